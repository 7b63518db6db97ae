# ruff: noqa: E501 - one text a line
"""Texts that hold what looks like a call of an offered tool, and in which nothing is called.

Each kind is a few templates. `$call` is a call in one of the notations that the kind allows,
`$other` one of another tool, `$name` the name of the tool, `$key` and `$value` its first argument.
"""

import json
from collections.abc import Callable, Iterator
from string import Template
from typing import Any, NamedTuple

from surecall.base.records import ToolSpec

__all__ = ["CALLS", "KINDS", "NOTATIONS", "OFFERED", "Negative", "negatives"]

CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("search", {"query": "northern lights", "limit": 5}),
    ("run", {"command": "make clean"}),
    ("get", {"url": "https://example.org/a"}),
    ("time", {"zone": "Europe/Oslo"}),
    ("email", {"to": "ana@example.org", "subject": "Hi"}),
    ("get_weather", {"city": "Oslo", "unit": "celsius"}),
    ("create_ticket", {"title": "Printer is down", "priority": 2}),
    ("delete_file", {"path": "/tmp/old.txt"}),
    ("send_message", {"recipient": "Li", "text": "On my way."}),
    ("geo.distance", {"start": "Bergen", "end": "Oslo"}),
)


def _tool(name: str, arguments: dict[str, Any]) -> ToolSpec:
    kinds = {
        key: "integer" if isinstance(value, int) else "string" for key, value in arguments.items()
    }
    properties = {key: {"type": kind} for key, kind in kinds.items()}
    schema = {"type": "object", "properties": properties, "required": [next(iter(arguments))]}
    return ToolSpec(name=name, parameters=schema)


OFFERED = tuple(_tool(name, arguments) for name, arguments in CALLS)


def _python(name: str, arguments: dict[str, Any]) -> str:
    given = ", ".join(f"{key}={json.dumps(value)}" for key, value in arguments.items())
    return f"{name}({given})"


def _positional(name: str, arguments: dict[str, Any]) -> str:
    return f"{name}({', '.join(map(repr, arguments.values()))})"


def _object(name: str, arguments: dict[str, Any]) -> str:
    return json.dumps({"name": name, "arguments": arguments})


def _keyed(name: str, arguments: dict[str, Any]) -> str:
    return json.dumps({name: arguments})


def _tag(name: str, arguments: dict[str, Any]) -> str:
    children = "".join(f"<{key}>{value}</{key}>" for key, value in arguments.items())
    return f"<{name}>{children}</{name}>"


NOTATIONS: dict[str, Callable[[str, dict[str, Any]], str]] = {
    "py": _python,
    "pos": _positional,
    "json": _object,
    "keyed": _keyed,
    "tag": _tag,
}
_ALL = ("py", "json", "pos", "keyed", "tag")
_BARE = ("py", "json", "pos", "keyed")
"""Without the tags of a family, which are calls whatever follows them."""
_CODE = ("py", "pos")
_DATA = ("json", "keyed")


class _Kind(NamedTuple):
    notations: tuple[str, ...]
    templates: tuple[str, ...]


class Negative(NamedTuple):
    """A text in which nothing is called."""

    kind: str
    text: str


KINDS: dict[str, _Kind] = {
    "question before": _Kind(
        _ALL,
        (
            "Shall I run $call?",
            "Should I call `$call`?",
            "Would you like me to run this?\n\n$call",
            "Do you want me to go ahead with the following?\n```\n$call\n```",
            "May I proceed with $call now, or do you prefer to wait?",
            "Soll ich $call ausführen?",
            "Soll ich das ausführen?\n\n$call",
            "Voulez-vous que j'exécute $call ?",
            "¿Quieres que ejecute $call?",
            "要我运行 $call 吗？",
            "I can do that. Is it okay if I use the following?\n\n$call",
            "Before I do anything: are you sure that you want this?\n\n$call",
            "Are you happy for me to send this?\n\n```\n$call\n```",
            "Ready to go? I have prepared this:\n\n$call\n\nSay yes and I send it.",
            "Just to be sure: is this the one you mean?\n\n$call",
            "Möchten Sie, dass ich Folgendes sende?\n\n$call",
            "Ça vous va si je fais ceci ?\n\n$call",
            "Can I trouble you to double-check the following before it goes out?\n\n$call",
            "Is the value right?\n\n$call",
            "Dürfte ich folgenden Aufruf machen?\n\n$call",
        ),
    ),
    "question behind": _Kind(
        _BARE,
        (
            "$call\n\nShall I run this?",
            "```\n$call\n```\nDoes that look right to you?",
            "$call\n\nPlease confirm before I send it. OK to proceed?",
            "$call\n\nLet me know if you want me to run it.",
            "I would do this:\n\n$call\n\nIs that what you want?",
            "$call\n\nSoll ich das so ausführen?",
            "$call\n\nEst-ce que je peux continuer ?",
            "$call\n\n¿Lo ejecuto?",
            "$call\n\n可以执行吗？",
            "$call\n\nIs it fine to send that?",
            "Here is my draft:\n\n$call\n\nAny objections?",
            "$call\n\nJust say the word and I will run it.",
            "```json\n$call\n```\n\nReply “yes” to confirm.",
            "This is what I propose:\n\n$call\n\nPlease review it first.",
            "$call\n\nWaiting for your approval.",
            "$call\n\nGood to go?",
            "I've drafted it:\n\n$call\n\nHappy to send it once you agree.",
            "$call\n\nPasst das so?",
            "$call\n\nNothing has been executed yet; tell me when.",
            "$call\n\nWhat would you change?",
            "$call\n\nTell me to stop if that is not right, otherwise confirm.",
            "$call\n\n这样对吗？",
        ),
    ),
    "description": _Kind(
        _ALL,
        (
            "The tool `$name` takes $key; for instance, $call would work.",
            "You can look that up with $call.",
            "One could use $call for this, but there is no need.",
            "With a call such as $call one gets an answer in seconds.",
            "Calls to $name look like this:\n\n$call",
            "The function is used like this:\n```\n$call\n```",
            "Man könnte dafür $call verwenden.",
            "On pourrait utiliser $call pour cela.",
            "Se podría usar $call para eso.",
            "你可以使用 $call 来查询。",
            "An agent in your place might issue something like\n\n$call",
            "The general form is:\n\n$call",
            "To get an answer, people typically write $call.",
            "What such a request contains:\n\n$call",
            "This is the kind of request that the server accepts:\n\n$call",
            "Under the hood, the assistant turns your wish into\n\n$call",
            "Requests of that type end up as `$call` on the server.",
            "So sieht ein Aufruf aus:\n\n$call",
            "Internally that is represented as\n\n$call",
            "It boils down to one line: $call",
            "Such a thing is spelled $call in most clients.",
        ),
    ),
    "documentation": _Kind(
        _ALL,
        (
            "## $name\n\nUsage:\n\n```\n$call\n```\n\nReturns an object.",
            "### Examples\n\n$call\n\nReturns the result as text.",
            "**Example:** $call",
            "Parameters: `$key` (required).\n\nExample call:\n$call",
            "See the documentation: $call returns a list.",
            "Syntax: $call",
            "### Beispiel\n\n$call",
            "### Exemple\n\n$call",
            "$name\n=====\n\nSample request:\n\n$call",
            "Quick start\n-----------\n\n```\n$call\n```\n\nThe answer is an object with the key `rows`.",
            "NAME\n    $name - look things up\n\nSYNOPSIS\n    $call",
            "Requests have this format:\n\n$call\n\nEach field is required.",
            '#### Request\n\n```json\n$call\n```\n\n#### Response\n\n```json\n{"rows": 3}\n```',
            "Try it out: paste `$call` into the form.",
            "Arguments are passed by name:\n\n$call",
            "Minimal working call (v2 API):\n\n$call\n\nSee also: limits.",
            "Body of the POST:\n\n```json\n$call\n```",
            "Reference > Tools > $name\n\n$call",
        ),
    ),
    "signature": _Kind(
        ("py",),
        (
            "$name($key: str) -> dict",
            "def $name($key: str) -> str:\n    ...",
            "The signature is $name($key: str, verbose: bool = False).",
            "`$name($key, timeout=30)` -> str",
            "function $name($key) { return null; }",
            "$name($key=None, *args, **kwargs)",
            "async def $name(*, $key: str) -> None",
        ),
    ),
    "tutorial": _Kind(
        _BARE,
        (
            "Step 1: Install the client.\nStep 2: Call the tool as follows:\n\n$call\n\nStep 3: Read the answer.",
            "In this tutorial you learn how to use `$name`.\n\n```python\nfrom client import $name\nanswer = $call\nprint(answer)\n```",
            "First, imagine that you write\n\n$call\n\nWhat happens next?",
            "Beginners often write $call here. That works, too.",
            "How to use it:\n\n1. Open a shell.\n2. Type `$call`.\n3. Press enter.",
            "Lesson 2. Read this aloud: $call",
            "Exercise: what does $call return?",
        ),
    ),
    "placeholder": _Kind(
        ("py",),
        (
            "$name(...)",
            "$name($key=...)",
            '$name($key="<$key>")',
            '$name($key="YOUR_VALUE_HERE")',
            "$name($key=<value>)",
            '{"name": "$name", "arguments": {"$key": "<$key>"}}',
            '{"name": "$name", "arguments": {...}}',
            'Fill in the blanks: {"name": "$name", "arguments": {"$key": "..."}}',
            "<$name><$key>...</$key></$name>",
        ),
    ),
    "quotation marks": _Kind(
        _ALL,
        (
            "The manual says “$call” on page 3.",
            "Im Handbuch steht „$call“.",
            "Le manuel dit « $call ».",
            "He wrote ‘$call’ on the board.",
            'The text "$call" is only an illustration.',
            "手册里写着「$call」。",
            "The note read: “$call”",
            "文档写道：“$call”。",
        ),
    ),
    "block quote": _Kind(
        _ALL,
        (
            "> $call\n\nThat is from the manual.",
            "As the manual puts it:\n\n> Use it so:\n> $call",
            "> > $call\n> I do not think so.",
            "On Monday Ana wrote:\n> $call",
        ),
    ),
    "table": _Kind(
        _CODE,
        (
            "| tool | example |\n|---|---|\n| $name | $call |",
            "| call | result |\n|---|---|\n| `$call` | ok |",
            "tool | call\n--- | ---\n$name | $call",
            "<table><tr><td>$name</td><td>$call</td></tr></table>",
        ),
    ),
    "strike-through": _Kind(
        _ALL,
        (
            "~~$call~~",
            "~~$call~~ That is not needed any more.",
            "<s>$call</s>",
            "<del>$call</del> (dropped)",
        ),
    ),
    "indented code": _Kind(
        _CODE,
        (
            "An example from the README:\n\n    $call\n\nThat is all.",
            "The script has this line:\n\n    answer = $call\n",
            "The old code was\n\n\t$call\n\nand it was slow.",
        ),
    ),
    "echoed result": _Kind(
        _ALL,
        (
            "<tool_response>\n$call\n</tool_response>",
            "<tool_response>$call</tool_response>\nThe tool answered.",
            "<function_results>\n$call\n</function_results>",
            "<observation>$call</observation>",
            "Observation: $call",
            "Tool result: $call",
            "<tool_result>\n$call",
            "[TOOL_RESULTS]$call[/TOOL_RESULTS]",
            "The tool returned:\n\n$call",
            "Response from the server:\n$call",
            "The API responded with $call.",
            "<result>\n$call\n</result>",
            "```output\n$call\n```",
            "Server said: $call",
            "Last response:\n\n$call",
            "What came back:\n\n$call",
            "Cached answer: $call",
            "Payload received at the endpoint:\n\n$call",
        ),
    ),
    "reasoning": _Kind(
        _ALL,
        (
            "<think>I could try $call first, but the answer is known.</think>It is four.",
            "Hmm, maybe $call would help. No: the user asked for something else.",
            "Let me think. If I ran $call, I would only repeat what is known. So no call is needed.",
            "Thinking aloud: $call might work, though I doubt it.",
            "<thinking>\n$call\n</thinking>\nNo tool is needed.",
            "The user wants the answer. One way is $call, another is to just say it. I just say it: 4.",
            "Okay, so the tools include $name. A possible call: $call. But the question is about something else.",
            "What about $call? It would return too much. Better to answer from memory: 4.",
        ),
    ),
    "other party": _Kind(
        _ALL,
        (
            "User: $call",
            "Human: please do $call\nAssistant: Sure, what for?",
            "Customer: I typed $call and nothing happened.",
            "The user wrote: $call",
            "You wrote $call, but which one do you mean?",
            "Ana (10:42): $call\nBen (10:43): thanks!",
            "Der Nutzer schrieb: $call",
            "L'utilisateur a écrit : $call",
            "用户写道：$call",
            "My colleague sent me this:\n\n$call",
            "The customer's message was:\n\n$call",
            "In your message I see\n\n$call\n\nwhich is not valid.",
            "Your input was:\n\n$call",
            "From the ticket:\n\n$call",
            "As Ben put it in the chat:\n\n$call",
            "Quoting the error report:\n\n$call",
            "Ben's suggestion was $call",
            "The form that the client filled in:\n\n$call",
            "Somebody on the forum posted:\n\n$call",
        ),
    ),
    "log": _Kind(
        _ALL,
        (
            "2024-05-01 12:00:01 INFO $call",
            "[2024-05-01T12:00:01Z] DEBUG agent: $call\n[2024-05-01T12:00:02Z] DEBUG agent: ok",
            "INFO:agent:$call took 12 ms",
            "The log has one line:\n\n12:00:01 worker-3 $call",
            "May  1 12:00:01 host agent[42]: $call",
            "Audit trail:\n\n- 12:01 $call\n- 12:02 done",
            "call #1: $call (200 OK, 35 ms)",
        ),
    ),
    "stack trace": _Kind(
        _CODE,
        (
            'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    $call\nValueError: no',
            "Error: failed\n    at $call (agent.js:12:3)\n    at main (agent.js:40:1)",
            "It fails with this trace:\n  File \"a.py\", line 3\n    answer = $call\nKeyError: '$key'",
        ),
    ),
    "unit test": _Kind(
        _CODE,
        (
            "```python\ndef test_it():\n    assert $call == 3\n```",
            "assert $call is not None",
            "Add a test:\n\n```python\nclass TestIt:\n    def test_a(self):\n        $call\n```",
            "expect($call).toBe(3);",
            "self.assertEqual($call, 3)",
            "mock.assert_called_with($call)",
            "Given $call\nWhen it is answered\nThen there are 3 rows",
        ),
    ),
    "diff": _Kind(
        _ALL,
        (
            "```diff\n- $call\n+ pass\n```",
            "--- a/agent.py\n+++ b/agent.py\n@@ -1,2 +1,2 @@\n-$call\n+pass",
            "@@ -3 +3 @@\n+    $call",
        ),
    ),
    "code review": _Kind(
        _CODE,
        (
            "In line 12, `$call` is never awaited.",
            "I would replace $call by a constant.",
            "nit: `$call` should be cached.",
            "Why is $call inside the loop? Please move it out.",
            "The line `$call` looks wrong to me.",
            "Please change this line:\n\n$call",
            "The following has a typo:\n\n$call",
            "This line is slow:\n```python\n$call\n```\nConsider a cache.",
            "`$call` → extract a constant for the value.",
            "Found in utils.py, line 40:\n\n$call",
            "Typo in $call: wrong key.",
            "I prefer $call over the old form.",
        ),
    ),
    "past": _Kind(
        _ALL,
        (
            "I called $call and it returned 3.",
            "Earlier I ran $call.",
            "I have already executed $call, so there is nothing to do.",
            "I used $call to find that out: it is sunny.",
            "Ich habe $call aufgerufen, das Ergebnis ist 3.",
            "J'ai appelé $call et c'est fait.",
            "Ya ejecuté $call y el resultado es 3.",
            "我已经调用了 $call，结果是三。",
            "Here is what I ran:\n\n$call\n\nIt returned 3.",
            "What happened so far:\n\n1. $call\n2. An answer came.",
            "This call was made a minute ago:\n\n$call",
            "My previous call:\n\n$call\n\nThe answer to it was 3 rows.",
            "After running $call, the answer is 3.",
            "The result of $call is 3.",
            "Based on $call, it is sunny in Oslo.",
            "That was done with\n\n$call\n\nan hour ago.",
            "Done! The call I made was $call.",
            "For the record, the request had been\n\n$call",
            "Logged for you: $call",
            "An hour ago the job did $call",
            "That went through as $call without problems.",
        ),
    ),
    "negation": _Kind(
        _ALL,
        (
            "I will not call $call.",
            "Do not call $call.",
            "There is no need to call $call here.",
            "Never run this:\n\n$call",
            "I cannot execute $call without your leave.",
            "Please don't use this:\n```\n$call\n```",
            "Ich werde $call nicht aufrufen.",
            "Je ne vais pas appeler $call.",
            "No voy a ejecutar $call.",
            "我不会调用 $call。",
            "This must not be sent:\n\n$call",
            "I am refusing to execute the following:\n\n$call",
            "It would be dangerous to run\n\n$call",
            "That request is not allowed:\n\n$call",
            "I won't do this:\n\n$call",
            "Under no circumstances:\n\n$call",
            "We stay away from\n\n$call\n\nbecause it deletes data.",
            "Blocked by policy:\n\n$call",
            "Auf keinen Fall:\n\n$call",
            "Not an option: $call",
            "No way that I do $call",
            "Out of scope for me:\n\n$call",
        ),
    ),
    "conditional": _Kind(
        _ALL,
        (
            "If you need more, I will call $call.",
            "If the file exists, run $call; otherwise do nothing.",
            "Once you tell me the date, I will use $call.",
            "Unless you object, the next step would be $call.",
            "When the build is done, you can start $call.",
            "Wenn Sie möchten, führe ich $call aus.",
            "Si vous voulez, je lance $call.",
            "Si quieres, ejecuto $call.",
            "如果你愿意，我可以运行 $call。",
            "In case it rains:\n\n$call",
            "Should the build fail, run $call.",
            "Assuming that the file is still there, $call is the way to go.",
            "As soon as I have your permission:\n\n$call",
            "After you have signed in, I will send this:\n\n$call",
            "Provided that you agree:\n\n$call",
            "Only on request:\n\n$call",
            "Falls nötig:\n\n$call",
            "Were the disk full, $call could help.",
            "Pending your answer:\n\n$call",
            "On Fridays only:\n\n$call",
        ),
    ),
    "alternatives": _Kind(
        _BARE,
        (
            "Either $call or $other would do.",
            "$call or $other",
            "Option A: $call\nOption B: $other",
            "There are two ways:\n\n1. $call\n2. $other\n\nWhich one do you prefer?",
            "$call\n\nor\n\n$other",
            "Entweder $call oder $other.",
            "You have the choice between $call and $other.",
            "Version 1:\n\n$call\n\nVersion 2:\n\n$other\n\nPick one.",
            "$call vs. $other",
            "Instead of\n\n$call\n\nwrite\n\n$other",
            "Left: $call. Right: $other. Your pick!",
            "First idea:\n\n$call\n\nSecond idea:\n\n$other\n\nI lean towards the first.",
            "A) $call\nB) $other\nYour choice.",
            "Maybe $call, maybe $other.",
        ),
    ),
    "list of tools": _Kind(
        ("py",),
        (
            "I have these tools:\n- search(query, limit)\n- run(command)\n- $name($key)",
            "Available functions: search(query), run(command), $name($key).",
            "* `$name($key)`: does something useful\n* `time(zone)`: tells the time",
            "My tools are $name and time.",
            "1. $name - looks things up\n2. time - tells the time",
        ),
    ),
    "definition": _Kind(
        ("json",),
        (
            '{"type": "function", "function": {"name": "$name", "description": "Does it.", "parameters": {"type": "object", "properties": {"$key": {"type": "string"}}}}}',
            'The tool is defined as\n```json\n{"name": "$name", "parameters": {"type": "object", "properties": {"$key": {"type": "string"}}, "required": ["$key"]}}\n```',
            '{"name": "$name", "description": "Does it.", "input_schema": {"type": "object", "properties": {"$key": {"type": "string"}}}}',
            '[{"name": "$name", "description": "Does it.", "parameters": {"$key": "string"}}]',
        ),
    ),
    "result": _Kind(
        ("json",),
        (
            '{"$name": {"status": "ok", "rows": 3}}',
            'The answer was {"tool": "$name", "result": {"rows": 3}}.',
            '{"tool_call_id": "c1", "name": "$name", "content": "3 rows"}',
            '{"role": "tool", "name": "$name", "content": "{\\"$key\\": \\"$value\\"}"}',
            '{"name": "$name", "status": "success", "output": "$value"}',
            '{"results": [{"name": "$name", "score": 0.9}, {"name": "other", "score": 0.1}]}',
        ),
    ),
    "configuration": _Kind(
        ("json",),
        (
            '```json\n{"$name": {"enabled": true, "timeout": 30}}\n```',
            "```yaml\n$name:\n  enabled: true\n  timeout: 30\n```",
            "[$name]\nenabled = true\ntimeout = 30",
            '```toml\n[tools.$name]\n$key = "$value"\n```',
            '{"scripts": {"$name": "node index.js", "build": "make"}}',
            "The file has a section for it:\n\n$name:\n  retries: 3",
        ),
    ),
    "ordinary words": _Kind(
        ("py",),
        (
            "It is time (at last) to get (or search) things and run (fast).",
            "I search (and find) what I get: a run (of luck).",
            "Use the search (top right), then email (or call) us any time (9-17).",
            "Run time: {hours: 3}. Email: {unknown}.",
            "Time [minutes]: 30. Search [query]: none.",
            "Get {well} soon, run {free}.",
            "The time (UTC) is 12:00; the search (full text) is done.",
            "My email (work) is ana@example.org, and $name ($key) is a term.",
        ),
    ),
    "shell": _Kind(
        ("py",),
        (
            "$$ $name --$key $value",
            "```bash\n$name --$key=$value\n```",
            'Run `curl -X POST https://example.org/$name -d \'{"$key": "$value"}\'`.',
            '```sh\ncurl https://example.org/$name -d \'{"$key": "$value"}\'\n```',
            ">>> $name('$value')\n3",
            "PS> $name('$value')",
        ),
    ),
    "SQL": _Kind(
        ("pos",),
        (
            "```sql\nSELECT $call FROM t;\n```",
            "SELECT $call FROM t WHERE a = 1;",
            "INSERT INTO $name ($key) VALUES ('$value');",
            "CREATE TABLE $name ($key text);",
        ),
    ),
    "other code": _Kind(
        _CODE,
        (
            "```javascript\nconst a = await $call;\nconsole.log(a);\n```",
            "```go\nx := $call\n```",
            "```rust\nlet x = $call;\n```",
            "```python\nfor i in range(3):\n    $call\n```",
            "```python\nimport client\n\nclient.connect()\nprint($call)\n```",
            "```java\nString a = $call;\n```",
            "Here is a script:\n\n```python\ntry:\n    x = $call\nexcept ValueError:\n    x = None\n```",
        ),
    ),
    "comment": _Kind(
        _ALL,
        (
            "# $call",
            "// $call",
            "/* $call */",
            "<!-- $call -->",
            "```python\n# $call\npass\n```",
            "-- $call",
        ),
    ),
    "regex": _Kind(
        ("py",),
        (
            "The pattern is `$name\\((.*)\\)`.",
            're.compile(r"$name\\(($key=.+)\\)")',
            'Match it with /$name\\("([^"]*)"\\)/g.',
        ),
    ),
    "HTML": _Kind(
        _CODE,
        (
            '<button onclick="$call">Go</button>',
            "<p>Write <code>$call</code> in the box.</p>",
            "```html\n<$name>$value</$name>\n```",
            '<a href="#$name">$name($key)</a>',
            "<script>$call</script>",
        ),
    ),
    "letter": _Kind(
        _ALL,
        (
            "Dear Ana,\n\nin your last mail you mentioned $call. It works for me.\n\nBest,\nBen",
            "From: ana@example.org\nSubject: $name\n\n> $call\n\nDid you try that?",
            "Hi Ben,\n\nthe vendor suggests $call as a workaround.\n\nBest,\nAna",
            "Subject: How to look it up\n\nHi all,\n\nhere is the command we agreed on:\n\n$call\n\nCheers,\nBen",
            "PS: the thing I told you about is $call.",
            "Thanks for your mail! Regarding $call: that is by design.",
        ),
    ),
    "mathematics": _Kind(
        ("py",),
        (
            "Let $name(x) = x^2 + 1; then $name(3) = 10.",
            "$name(x, y) = x + y for all x and y.",
            "For $name(n) we have $name(n+1) > $name(n).",
            "Suppose that $name(0) = 1.",
        ),
    ),
    "citation": _Kind(
        _ALL,
        (
            "[1] Li et al., “$call considered harmful”, 2023.",
            "See Smith (2021), p. 4: $call is the usual form.",
            "According to the handbook, $call is rarely used [2].",
        ),
    ),
    "apology": _Kind(
        _ALL,
        (
            "Sorry, I should not have called $call.",
            "I apologize: $call was a mistake.",
            "Sorry, $call failed, so I have no answer.",
            "Unfortunately, I am not able to run $call.",
            "Entschuldigung, $call ist fehlgeschlagen.",
            "抱歉，$call 失败了。",
            "I tried to do this, but it was refused:\n\n$call",
            "I made an error with\n\n$call\n\nand I am sorry.",
            "My bad, the earlier line\n\n$call\n\nhad the wrong value.",
            "I'm afraid $call is beyond what I can do.",
        ),
    ),
    "retraction": _Kind(
        _BARE,
        (
            "$call\n\nScratch that, no call is needed.",
            "$call\n\nActually, ignore that. The answer is 4.",
            "$call -- no, wait, that is not needed.",
            "$call\n\nForget that; I do not need it.",
            "I withdraw $call.",
            "Undo $call.",
            "$call\n\nHold on, that was the wrong one. I need the date first.",
            "$call\n\nCorrection: I do not have to call anything here.",
            "$call\n\nOops, I should not do that.",
            "$call\n\nThe above is only an example.",
            "$call\n\nThis is just an illustration and was not sent.",
            "$call\n\n(Do not run this, it is a placeholder.)",
            "$call\n\nHmm, that is the wrong tool for the job.",
            "$call\n\nOn reflection I will answer directly: it is 4.",
            "$call\n\nStrike that.",
            "$call\n\nIgnore the line above, please.",
            "$call\n\nNo, that tool cannot do it.",
        ),
    ),
    "transcript": _Kind(
        _ALL,
        (
            "Agent: $call\nTool: 3 rows\nAgent: There are 3 rows.",
            "Q: What does $call do?\nA: It looks things up.",
            "Transcript of the session:\n\nassistant: $call\ntool: ok",
            "In the demo the assistant answers:\n\n$call",
            "Alice: $call\nBob: what is that?",
            "[10:42] bot> $call\n[10:43] ana> nice",
            "Turn 1 (assistant): $call\nTurn 2 (tool): 3 rows",
            "Scene 1. The robot types $call and waits.",
            "Caller 1: $call\nCaller 2: hello?",
            "BOT> $call\nYOU> thanks",
            "Narrator: the machine prints $call",
        ),
    ),
    "plan for others": _Kind(
        _ALL,
        (
            "Ask your administrator to run $call.",
            "Your colleague can call $call tomorrow.",
            "The script runs $call every night.",
            "The scheduler will call $call at noon.",
            "You need to run $call on your machine.",
            "Führen Sie $call auf Ihrem Rechner aus.",
            "Paste this into your console:\n\n$call",
            "Add this line to your script:\n\n```python\n$call\n```",
            "Here is the code you asked for:\n\n```python\n$call\n```",
            "Send the following request from your own machine:\n\n$call",
            "Put this in a cron job:\n\n$call",
            "Your next exercise: write a call like $call yourself.",
            "Tell Ana to try $call.",
            "Copy and paste:\n\n$call",
            "Homework: run $call at home.",
            "Ops will do $call tonight.",
        ),
    ),
    "missing values": _Kind(
        ("py",),
        (
            "To call $name I need the $key. What is it?",
            "Please tell me the $key, so that I can call $name($key=...).",
            "I would call $name($key=?) but I do not know the $key.",
            "Which $key should I pass to $name()?",
            'I miss the $key, so this is incomplete: {"name": "$name", "arguments": {"$key": null}}',
        ),
    ),
}


def negatives() -> Iterator[Negative]:
    """Yield every text of every kind, each once."""
    seen: set[str] = set()
    for kind, (notations, templates) in KINDS.items():
        for turn, template in enumerate(templates):
            for number, (name, arguments) in enumerate(CALLS):
                # Every tool with every template, in notations that take turns.
                written = NOTATIONS[notations[(number + turn) % len(notations)]]
                key, value = next(iter(arguments.items()))
                other = CALLS[(number + 3) % len(CALLS)]
                text = Template(template).substitute(
                    call=written(name, arguments),
                    other=written(*other),
                    name=name,
                    key=key,
                    value=value,
                )
                if text not in seen:
                    seen.add(text)
                    yield Negative(kind, text)
