# ruff: noqa: E501 - one text a line
"""More texts in which nothing is called, in other words than `negatives`.

Templates take turns: the first, third, fifth of a kind were there when rules were made, the others
were not looked at before the rules were done. `$call` is a call, `$name` a tool's name, `$key` and
`$value` its first argument, `$tag` an element of the tool's name, `$empty` one without content.
"""

import json
from collections.abc import Callable, Iterator
from string import Template
from typing import Any, NamedTuple

from surecall.base.records import ToolSpec

__all__ = ["OFFERED", "FreshNegative", "fresh_negatives"]

CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("search", {"query": "tide tables", "limit": 3}),
    ("time", {"zone": "Asia/Tokyo"}),
    ("fit", {"model": "linear", "steps": 20}),
    ("note", {"text": "buy milk"}),
    ("list", {"folder": "inbox"}),
    ("save_note", {"title": "Groceries", "body": "milk, bread"}),
    ("book_room", {"room": "B12", "hours": 2}),
    ("get_weather", {"city": "Lima"}),
)


def _tool(name: str, arguments: dict[str, Any]) -> ToolSpec:
    properties = {
        key: {"type": "integer" if isinstance(value, int) else "string"}
        for key, value in arguments.items()
    }
    schema = {"type": "object", "properties": properties, "required": [next(iter(arguments))]}
    return ToolSpec(name=name, parameters=schema)


OFFERED = tuple(_tool(name, arguments) for name, arguments in CALLS)


def _python(name: str, arguments: dict[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _positional(name: str, arguments: dict[str, Any]) -> str:
    return f"{name}({', '.join(json.dumps(value) for value in arguments.values())})"


def _object(name: str, arguments: dict[str, Any]) -> str:
    return json.dumps({"name": name, "arguments": arguments})


def _keyed(name: str, arguments: dict[str, Any]) -> str:
    return json.dumps({name: arguments})


def _tag(name: str, arguments: dict[str, Any]) -> str:
    children = "".join(f"<{key}>{value}</{key}>" for key, value in arguments.items())
    return f"<{name}>{children}</{name}>"


NOTATIONS: tuple[Callable[[str, dict[str, Any]], str], ...] = (
    _python,
    _object,
    _positional,
    _tag,
    _keyed,
)

TEMPLATES: dict[str, tuple[str, ...]] = {
    "reference page": (
        "### `$name`\n\nFinds what you are after.\n\nArguments: `$key` (required).\n\nInvocation:\n\n$call\n\nReturns a list of records.",
        "## $name\n\n| argument | type |\n|---|---|\n| $key | string |\n\nHow it is written:\n\n    $call\n",
        "The tool `$name` takes one required argument, `$key`. A typical invocation reads $call and yields a JSON document.",
        "NAME\n    $name - does the work\n\nSYNOPSIS\n    $call\n\nDESCRIPTION\n    Takes a $key.",
        "$name accepts a $key. Written out in full:\n\n$call\n\nThe server replies within a second.",
        "**Purpose.** $name handles a single $key.\n**Form.** $call\n**Result.** An object with an `ok` field.",
        "In the manual, section 4.2 shows $call as the shortest valid form.",
        "Parameters of $name:\n- $key: what to work on\n\nMinimal form: $call\nFull form: $other",
    ),
    "changelog": (
        "## 2.3.0\n\n- Added $call to the public API\n- Fixed a crash in $other\n",
        "Release notes\n\n* New: $call now accepts a $key.\n* Removed: $other.",
        "v1.9 (May)\n  - $name: `$call` no longer blocks\n  - docs updated",
        "What's new: $call replaces the older $other everywhere.",
        "Breaking change: write $call where you had $other so far.",
        "Changed\n-------\n$call is three times as fast.\n$other is unchanged.",
    ),
    "chat quote": (
        "Maria posted this in the channel:\n\n$call\n\nNobody reacted.",
        "[10:42] bob: $call\n[10:43] ana: thanks!",
        "On Tuesday Kim sent me the line below and asked what it means:\n\n$call",
        "> $call\n\nThat is what your colleague posted; it has a wrong $key.",
        "Your message contains $call, which is not something I act on.",
        "You pasted:\n\n$call\n\nWhat should I do with it?",
        'The e-mail ends with the words "$call" and a signature.',
        "bob> $call\nana> no, not today",
    ),
    "html": (
        "Here is the page:\n\n<main>\n  $tag\n</main>",
        "<html>\n<body>\n$tag\n</body>\n</html>",
        "The template renders `$empty` inside the header, and $tag below it.",
        "Put $tag between the header and the footer.",
        "Your markup has a custom element:\n\n$tag\n\nBrowsers treat it as an inline element.",
        "A custom element such as $tag needs a dash in its name to be valid HTML.",
        "<ul>\n  <li>$tag</li>\n</ul>",
        "In the DOM you see\n$tag\nright under the body.",
    ),
    "jsx": (
        "export function App() {\n  return (\n    <Layout>\n      $empty\n    </Layout>\n  );\n}",
        "```jsx\nreturn <div>$empty</div>;\n```",
        "Render the component with `<$name $key={value} />` and pass the handler as a prop.",
        "const View = () => (\n  <>\n    $empty\n    <Footer />\n  </>\n);",
        "The component is used once:\n\n$empty\n\nand its props come from the store.",
        "In React you compose them: $empty goes inside the provider.",
    ),
    "vue": (
        "<template>\n  <section>\n    $empty\n  </section>\n</template>\n\n<script setup>\nimport $name from './$name.vue'\n</script>",
        "<template>\n$empty\n</template>",
        "In the parent template write\n\n$empty\n\nand register the component.",
        "Vue resolves\n$empty\nto the component registered under that name.",
    ),
    "xml document": (
        '<?xml version="1.0"?>\n<config>\n$tag\n</config>',
        "<root>\n$tag\n$tag\n</root>",
        "The schema allows one element of this kind per file:\n\n$tag\n\nMore are an error.",
        "A feed entry:\n\n$tag\n\nThe parser ignores unknown children.",
        "This fragment validates against the XSD:\n$tag",
        "Line 12 of settings.xml reads\n$tag\nand should be deleted.",
        "Export from the old system:\n\n$tag\n$tag",
        "The XSLT turns\n$tag\ninto a table row.",
    ),
    "python code": (
        "```python\nimport client\n\nresult = client.$call0\nprint(result)\n```",
        "```python\ndef main():\n    $call\n\nif __name__ == '__main__':\n    main()\n```",
        "In `jobs.py` there is\n\n    data = $call\n    store(data)\n\nwhich runs every night.",
        "class Job:\n    def go(self):\n        return $call",
        "with lock:\n    $call\n",
        "for x in xs:\n    $call\n",
        "try:\n    $call\nexcept Error:\n    pass",
        ">>> $call\n{'ok': True}",
    ),
    "javascript": (
        "```js\nconst r = await api.$call0;\nconsole.log(r);\n```",
        "```ts\nit('works', async () => {\n  expect(await $call).toBe(1);\n});\n```",
        "button.onclick = () => { $call; };",
        "function go() {\n  $call;\n}\n",
        "import { $name } from 'kit';\n\n$call;",
        "app.get('/x', (req, res) => res.json($call));",
    ),
    "other languages": (
        "```go\nfunc main() {\n\t$call\n}\n```",
        "```rust\nfn main() {\n    $call;\n}\n```",
        "public static void main(String[] args) {\n    $call;\n}",
        "#include <kit.h>\nint main(void) {\n  $call;\n  return 0;\n}",
        "```ruby\ndef go\n  $call\nend\n```",
        "```php\n<?php\n$call;\n```",
        "```bash\n#!/bin/sh\n$call\n```",
        "```kotlin\nfun main() { $call }\n```",
        "```sql\nSELECT $call FROM dual;\n```",
        "```csharp\nvar x = $call;\n```",
        "In Lua:\n\nlocal r = $call\nprint(r)",
        "In R you write `r <- $call` and then plot it.",
    ),
    "json config": (
        'package.json:\n\n{"scripts": {"$name": {"$key": "$value"}}, "version": "1.0"}',
        '{"settings": {"$name": {"enabled": true}}}',
        'The settings file holds\n\n{"$name": {"$key": "$value"}}\n\nwhich sets the default.',
        'Default configuration:\n\n{"$name": {"$key": "$value"}}',
        '```json\n{"tools": [{"name": "$name", "description": "Does it", "parameters": {"type": "object"}}]}\n```',
        '```json\n{"type": "function", "function": {"name": "$name", "parameters": {"type": "object", "properties": {"$key": {"type": "string"}}}}}\n```',
        'The manifest lists it: {"name": "$name", "version": "2.1"}',
        'Our fixture file contains\n\n{"name": "$name", "arguments": {"$key": "$value"}}\n\nand two more records.',
    ),
    "log": (
        "2031-02-03T04:05:06Z INFO worker $call\n2031-02-03T04:05:07Z INFO done",
        "[info] dispatch $call took 12 ms\n[info] idle",
        "Jan 03 04:05:06 host app[12]: $call",
        'level=debug msg="$call" took=3ms',
        "12:01:02.345 | $call | ok",
        "TRACE enter $call\nTRACE leave",
    ),
    "table": (
        "| tool | written as |\n|---|---|\n| $name | $call |\n",
        "Tool      | Form\n----------|------\n$name | $call\n",
        "tool\tform\n$name\t$call\n",
        "1 | $call | used often\n2 | $other | used rarely",
        "<table><tr><td>$name</td><td>$call</td></tr></table>",
        "$name ......... $call\nother ......... $other",
    ),
    "tutorial": (
        "You could call $call to get started.",
        "One way to do this would be $call, another $other.",
        "Beginners often start with $call and move on to $other later.",
        "Try it yourself: open the console and type $call.",
        "Step 1. Install the kit.\nStep 2. Type $call.\nStep 3. Look at the output.",
        "Lesson 3: the first call. We write $call and press Enter.",
        "Exercise: what does the following print?\n\n$call",
        "Once installed, a user types\n\n$call\n\nand sees the answer.",
    ),
    "question": (
        "Shall I run $call?",
        "Is $call what you had in mind?",
        "Do you really want $call here?",
        "I could go with $call. Okay?",
        "Want me to start with this?\n\n$call",
        "Does this match your intent?\n\n$call",
        "$call\n\nGood to go?",
        "$call\n\nMay I?",
        "What would happen with $call?",
        "Have you already tried $call?",
    ),
    "plan": (
        "My plan: first $call, then $other, and finally a summary. Tell me if that suits you.",
        "Plan of action (nothing started yet):\n1. $call\n2. $other\n3. Write the report",
        "First I will need your answer; after that comes $call, and then $other.",
        "Tomorrow I would begin with $call and continue with $other.",
        "Later on, once the data is in, the next step will be $call.",
        "Roadmap:\n- week 1: $call\n- week 2: $other",
        "If the numbers hold up, $call comes next.",
        "Should the first attempt fail, the fallback is $call.",
    ),
    "apology": (
        "I cannot call $name: $call is blocked in this session.",
        "Sorry, $call is beyond what I may do.",
        "I'm afraid I have no permission for $call.",
        "Unfortunately I am not able to issue $call for you.",
        "I won't run $call, since it would overwrite your work.",
        "Apologies, but I must decline. $call is not available to me.",
        "I have no access to the tool, otherwise it would have been $call.",
        "Regrettably the request $call lies outside my remit.",
    ),
    "error message": (
        "Error: $call raised ValueError: bad $key",
        "TypeError in $call: missing argument",
        "The server rejected $call with status 422.",
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    $call\nKeyError: '$key'",
        "error[E0425]: cannot find function `$name`\n  |\n3 |     $call;\n  |     ^^^^",
        "Validation failed for\n\n$call\n\nbecause the $key is unknown.",
        "Timeout while waiting for $call.",
        "Uncaught exception at $call (line 8)",
    ),
    "report": (
        "I called $call and got three results.",
        "A moment ago I ran $call; the answer was empty.",
        "So far I have used $call and $other.",
        "After $call had finished, I summarised the findings above.",
        "The figures come from $call, made an hour ago.",
        "Done: $call gave me everything needed, so here is the summary.",
        "What I did:\n- $call\n- $other\nBoth succeeded.",
        "Steps taken:\n1. $call\n2. $other\nNothing else was necessary.",
        "Based on the output of $call, the answer is 42.",
        "Thanks to $call we know that it is sunny.",
    ),
    "echoed result": (
        "<tool_response>\n$call\n</tool_response>\nThat is all there was.",
        "Tool output:\n$call\n",
        "Observation: $call\nSo the answer is no.",
        "The tool came back with\n\n$call\n\nwhich is odd.",
        "Result of the lookup:\n\n$call",
        "The reply of the server was:\n$call",
        "<result>$call</result>",
        "Response body:\n\n$call\n\nStatus: 200",
    ),
    "another party": (
        "User: $call\nAssistant: I do not act on that.",
        "Customer: please do $call\n\nAgent: we will see.",
        "The customer insists on $call, but the rules say no.",
        "According to the ticket, support ran $call on Monday.",
        "Their assistant answered with\n\n$call\n\nand then crashed.",
        "The other agent proposes $call.",
        "The vendor's guide recommends $call.",
        "My predecessor always wrote $call here.",
    ),
    "german": (
        "Sie könnten zum Beispiel $call schreiben.",
        "Zuerst würde ich $call aufrufen, danach $other.",
        "Ich habe $call ausgeführt und drei Treffer erhalten.",
        "Leider darf ich $call nicht ausführen.",
        "Die Dokumentation nennt folgende Form:\n\n$call",
        "Der Aufruf\n\n$call\n\nist in der Anleitung beschrieben.",
        "Soll ich damit anfangen?\n\n$call",
        "Wäre das so in Ordnung für dich?\n\n$call",
        "Herr Vogt hat gestern folgende Zeile geschickt:\n\n$call",
        "Im Protokoll steht:\n\n$call",
    ),
    "spanish": (
        "Por ejemplo, se podría escribir $call.",
        "Primero haría $call y luego $other.",
        "Ya ejecuté $call y no encontré nada.",
        "Lo siento, no puedo ejecutar $call.",
        "En la documentación aparece así:\n\n$call",
        "El manual muestra esta forma:\n\n$call",
        "¿Empiezo con esto?\n\n$call",
        "¿Le parece bien lo siguiente?\n\n$call",
        "Ayer el cliente mandó esta línea:\n\n$call",
        "El registro dice:\n\n$call",
    ),
    "french": (
        "On pourrait par exemple écrire $call.",
        "D'abord je ferais $call, ensuite $other.",
        "J'ai lancé $call et obtenu trois résultats.",
        "Désolé, je ne peux pas exécuter $call.",
        "La documentation donne cette forme :\n\n$call",
        "Le manuel indique ceci :\n\n$call",
        "Dois-je commencer par cela ?\n\n$call",
        "Cela vous convient-il ?\n\n$call",
        "Hier le client a envoyé cette ligne :\n\n$call",
        "Le journal contient :\n\n$call",
    ),
    "chinese": (
        "例如，你可以写 $call 来开始。",
        "比方说可以这样写：\n\n$call",
        "我已经调用了 $call，得到三个结果。",
        "刚才运行过 $call，没有结果。",
        "抱歉，我不能执行 $call。",
        "很遗憾，无法运行 $call。",
        "文档中的写法是：\n\n$call",
        "手册给出的格式如下：\n\n$call",
        "要我这样做吗？\n\n$call",
        "这样可以吗？\n\n$call",
        "用户昨天发来这一行：\n\n$call",
        "日志里写着：\n\n$call",
    ),
    "japanese": (
        "例えば $call と書けます。",
        "たとえば次のように書きます：\n\n$call",
        "$call を実行しましたが、結果はありませんでした。",
        "先ほど $call を呼び出し、三件見つかりました。",
        "申し訳ありませんが、$call は実行できません。",
        "残念ながら $call は使えません。",
        "ドキュメントにはこう書かれています：\n\n$call",
        "マニュアルの形式は次のとおりです：\n\n$call",
        "これを実行してもよろしいですか？\n\n$call",
        "次の内容でよいでしょうか？\n\n$call",
        "昨日お客様から次の行が届きました：\n\n$call",
        "ログにはこうあります：\n\n$call",
    ),
    "comparison": (
        "$call is shorter than $other, but both do the same.",
        "Between $call and $other I prefer the former.",
        "Compare:\n\n$call\n$other\n\nThe second one is faster.",
        "Spot the difference:\n\n$call\n$other",
        "Left: $call. Right: $other.",
        "The two forms, $call and $other, are equivalent.",
    ),
    "review": (
        "Review comment on line 8: $call lacks error handling.",
        "nit: `$call` could be inlined",
        "Please replace $call by $other before merging.",
        "LGTM, except that $call should be awaited.",
        "Suggestion:\n\n$call\n\ninstead of the loop.",
        "Why is $call needed in this file?",
        "I would rename the argument in\n\n$call\n\nfor clarity.",
        "This line puzzles me:\n\n$call\n\nWho wrote it?",
    ),
    "meaning": (
        "$call means: do the thing once.",
        "In plain words, $call asks the service for data.",
        "The expression\n\n$call\n\nhas two parts, a name and arguments.",
        "Read aloud, $call sounds funny.",
        "The string $call is 20 characters long.",
        "Tokenised,\n\n$call\n\nbecomes nine tokens.",
        "Translate $call into English: look it up.",
        "The text\n\n$call\n\nis valid syntax.",
    ),
    "story": (
        "The robot blinked, muttered $call under its breath and fell silent.",
        "On the screen one line was left:\n\n$call\n\nShe closed the laptop.",
        "He had tattooed $call on his arm.",
        '"$call," whispered the machine.',
        "The last page of the notebook said only\n\n$call\n\nand nothing more.",
        "A sticker on the lid read $call.",
    ),
    "rule": (
        "Policy: $call is allowed only with a manager's sign-off.",
        "Never do this:\n\n$call",
        "The house rule forbids\n\n$call\n\nafter midnight.",
        "Agents are expected to write $call, not $other.",
        "Only administrators are entitled to\n\n$call",
        "It is good practice to precede $call by a check.",
    ),
    "ordinary words": (
        "I took note (text below) and made a list (folder by folder).",
        "The time (zone: local) and the list (long) are on the page.",
        "Search (or browse) the list: it has {3} entries.",
        "The fit [see figure 2] was good; note {a} applies.",
        "List:\n- time: noon\n- note: bring a coat",
        "Note:\n  the list is long\nTime:\n  an hour",
        "Search results:\n  query: tide tables\n  hits: 3",
        "Fit: model = linear, steps = 20 were used in the paper.",
    ),
}


class FreshNegative(NamedTuple):
    """A text in which nothing is called."""

    kind: str
    text: str


def fresh_negatives(*, held_out: bool) -> Iterator[FreshNegative]:
    """Yield the texts of every other template, each with every tool."""
    seen: set[str] = set()
    for kind, templates in TEMPLATES.items():
        for turn, template in enumerate(templates[held_out::2]):
            for number, (name, arguments) in enumerate(CALLS):
                key, value = next(iter(arguments.items()))
                for step in range(2):
                    write = NOTATIONS[(number + turn + 2 * step) % len(NOTATIONS)]
                    text = Template(template).substitute(
                        call=write(name, arguments),
                        call0=_python(name, arguments),
                        other=write(*CALLS[(number + 3) % len(CALLS)]),
                        tag=_tag(name, arguments),
                        empty=f'<{name} {key}="{value}" />' if step else f"<{name} />",
                        name=name,
                        key=key,
                        value=value,
                    )
                    if text not in seen:
                        seen.add(text)
                        yield FreshNegative(kind, text)
