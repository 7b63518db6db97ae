# ruff: noqa: E501 - one text a line
"""A third set of texts in which nothing is called: agents that talk about tools as part of work.

Every kind has five templates, filled with each of eight tools. They were written without a look at
the rules. `$call`, `$py`, `$json`, `$name`, `$key`, `$value` stand for a tool and its arguments.
"""

import json
from collections.abc import Iterator
from string import Template
from typing import NamedTuple

from .fresh_negatives import CALLS, OFFERED

__all__ = ["OFFERED", "ThirdNegative", "third_negatives"]


class ThirdNegative(NamedTuple):
    """One text and the kind of text that it is."""

    kind: str
    text: str


KINDS: dict[str, tuple[str, ...]] = {
    "plan": (
        "Plan:\n1. Look at the ticket.\n2. If the data is missing, use $name.\n3. Write the summary.",
        "My plan is to start with `$name` once you confirm, and then to compare the results.",
        "Next steps (not started):\n- [ ] $name with $key = $value\n- [ ] report back",
        "I would go about it like this: first $call, then look at what comes back. Is that fine with you?",
        "Before anything runs I need your approval. The step would be:\n\n    $call\n\nReply yes to go on.",
    ),
    "summary": (
        "Summary of the session: $name was used twice, both times with $key set to $value, and gave the same result.",
        "In short: I called $call earlier and it returned 14 rows. Nothing else is needed.",
        "What I did:\n- ran `$call`\n- compared the output with yesterday's\n\nAll is well.",
        "We used $name to get the figures; see the table above.",
        "Done. The call $call succeeded on the second try after the first one timed out.",
    ),
    "status report": (
        "Status: $name finished in 1.2 s (args: $json). 0 errors.",
        "[OK] $name\n[OK] cleanup\n[FAILED] upload",
        "Step 2 of 5 complete: $name($key=…) → 200 OK",
        "$name: done\nupload: pending\nreport: pending",
        "The job that runs $call every night failed at 02:00.",
    ),
    "code review": (
        "In `agent.py`, line 40, you write `$py`, but the result is never checked. I'd suggest wrapping it in a try block.",
        "```diff\n- result = $py\n+ result = await $py\n```\nThe call has to be awaited.",
        "The handler looks good. One nit: `$name` should validate `$key` before use.",
        "```python\ndef test_$name():\n    assert $py is not None\n```\nThis test can never fail.",
        "Why is `$name` called inside the loop? Move `$py` out of it.",
    ),
    "documentation": (
        "## $name\n\nReturns a list of matches.\n\n**Parameters**\n\n- `$key`: for example `$value`\n\n**Example**\n\n```json\n$json\n```",
        "### Usage\n\n```python\nfrom tools import $name\n\nprint($py)\n```",
        "The tool `$name` takes one required argument, `$key`. A request looks like this: `$call`.",
        "`$name` is deprecated since 2.0.\nUse the new endpoint instead.\n\nOld form: `$py`",
        "Signature: $name($key: str) -> dict",
    ),
    "faq": (
        "**Q: How do I call $name?**\nA: Send a message such as $call and wait for the reply.",
        "Q: Can $name be used twice?\nA: Yes, for instance with $key=\"$value\".",
        "You asked what `$call` does. It asks the server for data and returns JSON.",
        "What happens if $key is missing? Then $name answers with an error.",
        "Is $py the same as $name without arguments? No.",
    ),
    "quoted log": (
        "The log says:\n\n2026-03-01 12:00:01 INFO agent calling $name args=$json\n2026-03-01 12:00:02 ERROR timeout\n\nSo the timeout came first.",
        "> [tool] $name $json\n> [tool] error: connection refused\n\nThat is the part of the log that matters.",
        "From the trace: `{\"event\": \"tool_call\", \"name\": \"$name\", \"arguments\": $json}` was logged at 12:00 and nothing after it.",
        "DEBUG: $call\nDEBUG: returned None\n\nThese two lines from your console show the bug.",
        "Traceback (most recent call last):\n  File \"run.py\", line 3, in <module>\n    $py\nTypeError: unexpected keyword argument\n\nThe error means that the name is wrong.",
    ),
    "html": (
        "```html\n<button onclick=\"$name('$value')\">Go</button>\n```\nPut this into your page.",
        "<p>Use <code>$name</code> to look things up.</p>",
        "<ul><li>$name</li><li>other</li></ul>",
        "The page has a form:\n\n<form action=\"/$name\"><input name=\"$key\" value=\"$value\"></form>",
        "<!-- $call -->\n<div>Nothing to see</div>",
    ),
    "jsx": (
        "```jsx\n<Tool name=\"$name\" $key=\"$value\" />\n```\nThis component shows the tool's state.",
        "Render `<$name $key={value} />` inside the provider.",
        "```tsx\nconst { data } = useTool('$name', $json);\n```\nThe hook caches its result.",
        "export const tools = { $name: (args) => fetch('/api/$name', args) };",
        "The prop `$key` of `<ToolCard>` is set to \"$value\" by $name.",
    ),
    "xml": (
        "```xml\n<tool id=\"$name\"><param>$key</param></tool>\n```\nThat is how the manifest lists it.",
        "The config file has\n\n<tools>\n  <tool>$name</tool>\n</tools>\n\nand that is all it needs.",
        "In the WSDL the operation is `<operation name=\"$name\"/>`.",
        "Your sitemap needs <loc>https://example.org/$name</loc>.",
        "<note>\n  <to>Ana</to>\n  <body>please ask about $name</body>\n</note>\nis what the mail contained.",
    ),
    "shell": (
        "```bash\n./cli $name --$key \"$value\"\n```\nRun this in your terminal.",
        "$$ agent run $name --args '$json'\n\nis the command you want.",
        "You can try `curl -X POST localhost:8000/$name -d '$json'` yourself.",
        "Add `alias t='$name'` to your shell profile.",
        "```\n$$ $name --help\nusage: $name [--$key VALUE]\n```",
    ),
    "sql": (
        "```sql\nSELECT * FROM tool_calls WHERE name = '$name' AND args LIKE '%$value%';\n```",
        "INSERT INTO calls (name, args) VALUES ('$name', '$json');\n\nwould add the row you are missing.",
        "The table `$name` has a column `$key`.",
        "```sql\nCALL $name('$value');\n```\nis how a stored procedure of that name would be called.",
        "SELECT $name('$value') FROM dual; returns one row in Oracle.",
    ),
    "yaml": (
        "```yaml\ntools:\n  - name: $name\n    args:\n      $key: $value\n```\nSave it as agent.yaml.",
        "name: $name\nenabled: true\ntimeout: 30\n\nThat is the entry in your config.",
        "steps:\n  - uses: $name\n    with:\n      $key: \"$value\"\n\nThis is the workflow file.",
        "In `values.yaml`, set `$name.$key` to `$value`.",
        "```yaml\non_failure: $name\n```",
    ),
    "toml": (
        "```toml\n[tools.$name]\n$key = \"$value\"\n```\nPut this into surecall.toml.",
        "[[tool]]\nname = \"$name\"\nenabled = false\n\nturns it off.",
        "The line `$name = { $key = \"$value\" }` is invalid in TOML 0.4.",
        "`allow = [\"$name\"]` is enough.",
        "[project.scripts]\n$name = \"app:main\"",
    ),
    "json config": (
        "Your settings.json should hold:\n\n```json\n{\"tools\": [{\"name\": \"$name\", \"enabled\": true}]}\n```",
        "The schema of the tool is\n\n```json\n{\"name\": \"$name\", \"parameters\": {\"type\": \"object\", \"properties\": {\"$key\": {\"type\": \"string\"}}}}\n```",
        "```json\n{\"permissions\": {\"allow\": [\"$name\"]}}\n```\nallows it.",
        "A test fixture could look like {\"input\": $json, \"expected\": null}.",
        "The server answered {\"tool\": \"$name\", \"status\": \"ok\", \"result\": []}, which is an empty list.",
    ),
    "table": (
        "| tool | argument | runs |\n|---|---|---|\n| $name | $key=$value | 3 |\n| other | - | 0 |",
        "| call | result |\n|---|---|\n| `$call` | ok |\n| `$py` | ok |",
        "Name | Arguments\n--- | ---\n$name | $json",
        "| step | what |\n|---|---|\n| 1 | $name |\n| 2 | tell the user |",
        "tool        calls\n$name        12\nother         3",
    ),
    "german": (
        "Ich würde zuerst $call ausführen, wenn du einverstanden bist.",
        "Das Werkzeug $name wurde bereits aufgerufen; das Ergebnis steht oben.",
        "Zur Erklärung: `$py` liefert eine Liste.",
        "Soll ich $call aufrufen?",
        "Mit $name kann man so etwas tun: $json. Ich habe es aber nicht getan.",
    ),
    "french": (
        "Je pourrais appeler $call, mais il me manque votre accord.",
        "L'outil $name a déjà été utilisé avec $key = « $value ».",
        "Par exemple, « $call » renvoie une liste.",
        "Voulez-vous que je lance $py ?",
        "Dans la documentation, on trouve : `$call`.",
    ),
    "spanish and portuguese": (
        "¿Quieres que ejecute $call?",
        "Ya usé $name con $key igual a $value; no hace falta repetirlo.",
        "Por ejemplo: `$py` devuelve una lista.",
        "Eu poderia chamar $call, mas preciso da sua confirmação.",
        "A ferramenta $name não está disponível hoje.",
    ),
    "chinese and japanese": (
        "我可以调用 $call，需要我继续吗？",
        "工具 $name 已经运行过，结果见上文。",
        "例如，`$py` 会返回一个列表。",
        "$name を呼び出す場合は `$call` のように書きます。",
        "先ほど $call を実行しましたが、失敗しました。",
    ),
    "ordinary words": (
        "It takes time to fit a model, so please note the list and search it later.",
        "Time: 14:00\nNote: bring the list\nSearch: none",
        "Please note (again) that the list (see above) is out of date.",
        "A good search (or a list) saves time (and money).",
        "note: $value\ntime: tomorrow\nlist: none",
    ),
    "refusal": (
        "I can't run $name here, because I have no access. You could do it yourself with `$call`.",
        "Sorry, $call is not possible without permission.",
        "I will not call $name: the argument $key=$value looks like personal data.",
        "Without credentials, $py would only fail, so I did not try.",
        "I don't have a tool that does more than $name.",
    ),
    "comparison": (
        "`$call` is faster than doing it by hand, but less exact.",
        "Compare:\n\nA) $call\nB) asking a person\n\nB is better here.",
        "Option 1: $py\nOption 2: do nothing\n\nWhich one do you prefer?",
        "Instead of $json you meant probably another value.",
        "The difference between $name and its predecessor is the argument $key.",
    ),
    "lesson": (
        "Exercise: what does `$py` return? Think before you read on.",
        "To teach a model, one shows it pairs such as: user asks, assistant writes $call.",
        "A function call has a name ($name), and arguments ($json).",
        "In Python one would write $py; in JavaScript it looks similar.",
        "Lesson 3: arguments are passed by name, as in $py.",
    ),
    "changelog": (
        "- fixed: $name no longer ignores $key\n- new: retries",
        "v1.2: `$call` now returns an empty list instead of an error.",
        "BREAKING: $name($key) was renamed.",
        "* $name: add `$key` (default `$value`)",
        "feat($name): accept $json",
    ),
}  # fmt: skip


def third_negatives() -> Iterator[ThirdNegative]:
    """Yield every template filled with every tool."""
    for kind, templates in KINDS.items():
        for template in templates:
            for name, arguments in CALLS:
                yield ThirdNegative(kind, _fill(template, name, arguments))


def _fill(template: str, name: str, arguments: dict[str, object]) -> str:
    key, value = next(iter(arguments.items()))
    written = json.dumps(arguments)
    python = f"{name}({', '.join(f'{one}={other!r}' for one, other in arguments.items())})"
    call = json.dumps({"name": name, "arguments": arguments}) if len(name) % 2 else python
    return Template(template).substitute(
        name=name, key=key, value=value, json=written, py=python, call=call
    )
