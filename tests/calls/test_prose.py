"""Text that speaks about calls, or only looks like one, calls nothing."""

import pytest

from surecall.base.records import ToolSpec
from surecall.reading import ReplyReader, read_reply


def tool(name: str, required: tuple[str, ...] = (), **properties: str) -> ToolSpec:
    """Return a tool with an ordinary word as its name."""
    schemas = {key: {"type": kind} for key, kind in properties.items()}
    return ToolSpec(
        name=name,
        parameters={"type": "object", "properties": schemas, "required": list(required)},
    )


TOOLS = (
    tool("search", ("query",), query="string", limit="integer"),
    tool("read", ("path",), path="string"),
    tool("get_weather", ("city",), city="string", days="integer"),
    tool("ping"),
    tool("print", ("text",), text="string"),
    tool("time"),
    tool("map", ("place",), place="string", zoom="integer"),
    tool("run", ("command",), command="string"),
)

PING = '{"name": "ping", "arguments": {}}'
TAGGED = f"<tool_call>{PING}</tool_call>"
CALL = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
PROSE: dict[str, str] = {
    # the formats, documented in inline code
    "hermes in ticks": f"Qwen writes `<tool_call>{CALL}</tool_call>` around each call.",
    "qwen xml in ticks": "It is `<tool_call><function=ping></function></tool_call>` in Qwen.",
    "glm in ticks": "GLM writes `<tool_call>ping</tool_call>` and nothing more.",
    "mistral in ticks": "Mistral writes `[TOOL_CALLS]ping[ARGS]{}` instead.",
    "deepseek in ticks": "So `<｜tool▁call▁begin｜>ping<｜tool▁sep｜>{}<｜tool▁call▁end｜>`.",
    "kimi in ticks": "`<|tool_call_begin|>functions.ping:0<|tool_call_argument_begin|>{}`: Kimi.",
    "harmony in ticks": "See `<|channel|>commentary to=functions.ping<|message|>{}<|call|>` there.",
    "llama in ticks": f"Llama starts with `<|python_tag|>{CALL}` in that case.",
    "invoke in ticks": 'Use `<function_calls><invoke name="ping"></invoke></function_calls>`.',
    "function tag in ticks": "The form is `<function=ping>{}</function>` there.",
    "gemma in ticks": "Gemma has `<|tool_call>call:ping{}<tool_call|>` for it.",
    "pythonic in ticks": "Llama 4 answers `[ping()]`, a list of calls.",
    "json in ticks": f"`{CALL}` is what the model sends.",
    "double ticks": f"Write ``<tool_call>{CALL}</tool_call> `` with a closing tag.",
    "ticks over two lines": "It looks like `<tool_call>\nping\n</tool_call>` on the wire.",
    # the formats, documented in fences that something follows
    "hermes in a fence": f"```\n<tool_call>\n{CALL}\n</tool_call>\n```\nThis is one call.",
    "qwen xml in a fence": (
        "For example:\n```xml\n<tool_call>\n<function=ping>\n</function>\n</tool_call>\n```\nDone."
    ),
    "json in a fence": f"Send this:\n```json\n{CALL}\n```\nThe server answers with the weather.",
    "python in a fence": '```python\nget_weather(city="Oslo")\n```\nThis prints the weather.',
    "react in a fence": "```\nAction: ping\nAction Input: {}\n```\nis how ReAct does it.",
    "an indented fence": f"1. Write this:\n   ```json\n   {CALL}\n   ```\n2. Send it.",
    "tildes": f"~~~\n<tool_call>{CALL}</tool_call>\n~~~\nAs above.",
    "a fence in another language": f"```yaml\ncall: {CALL}\n```",
    "a curl command": f"```bash\ncurl -d '{CALL}' http://localhost/run\n```",
    "two fences": f'Before:\n```json\n{CALL}\n```\nAfter:\n```json\n{{"ok": true}}\n```',
    # sentences that name the markers
    "a marker in a sentence": "Wrap the call in <tool_call> and </tool_call> tags.",
    "markers in quotes": 'The opener is "<tool_call>" and the closer is "</tool_call>".',
    "a closer alone": "The reply ended with </tool_call>, which is odd.",
    "a token in a sentence": "The token <|tool_call|> starts a call in Granite.",
    "a mistral token": "[TOOL_CALLS] is a special token of Mistral's tokenizer.",
    "a deepseek token": "<｜tool▁calls▁begin｜> opens the section of calls.",
    "a kimi token": "After <|tool_calls_section_begin|> come the calls.",
    "a python tag": "<|python_tag|> is a special token of Llama 3.1.",
    "a function tag": "Functionary uses <function=NAME> with JSON inside.",
    "an invoke tag": 'Each <invoke name="..."> holds parameters.',
    "an open invoke": 'Start with <invoke name="ping"> and go on from there.',
    "a named function tag": "The tag <function=ping> names the function to call.",
    "an answer about tags": "You need <function_calls> around the <invoke> elements.",
    "functools": "The Phi models write functools[...] before the calls.",
    "a florette": "Qwen-Agent writes ✿FUNCTION✿ and ✿ARGS✿ around them.",
    # placeholders
    "a name in angle brackets": (
        '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
    ),
    "a name to be filled in": '<tool_call>{"name": "<tool name>", "arguments": {}}</tool_call>',
    "an example function": "<example_function>\n<parameter>x</parameter>\n</example_function>",
    "a variable": "Action: $TOOL_NAME\nAction Input: $INPUT",
    "one of the tools": "Action: the action to take, should be one of [search, read]",
    # HTML, XML, JSX and generics
    "a search element": '<search>\n<input name="query">\n</search>',
    "a time element": "It began at <time>20:00</time> in the hall.",
    "a time element on its line": "<time>20:00</time>\n\nis how HTML marks a time.",
    "an image map": '<map name="m">\n<area shape="rect" href="a.html">\n</map>',
    "xml of a weather feed": "<weather>\n  <city>Oslo</city>\n  <days>3</days>\n</weather>",
    "a component": "<Search query={query} limit={3} />\n\nrenders the box.",
    "a component in a sentence": "Put <run command='ls' /> into the form.",
    "a build file": "<target>\n  <run>make</run>\n  <read>x.txt</read>\n</target>",
    "a run element with text": "<run>\nls -l\n</run>",
    "generics": "Vec<function> and Map<string, invoke> are types.",
    "an svg": '<svg><text x="1">ping</text></svg>',
    "code tags": "<code>ping()</code> sends a packet.",
    "a tool element": "<tool>hammer</tool> is an element of the shop's feed.",
    # Python and other code as the answer
    "a python answer": "```python\nimport time\n\nprint(time.time())\n```",
    "a python function": '```python\ndef f():\n    return search(query="x")\n```',
    "a positional print": '```python\nprint("hello")\n```',
    "a print on its line": 'Use this line:\n\nprint("hello")',
    "a map over a list": "list(map(str, [1, 2]))",
    "a call with a variable": "search(query=user_input)",
    "code without a fence": "x = ping()\nprint(x)",
    "a call in a chain": 'result = get_weather(city="Oslo").upper()',
    "a method of a library": 'client.search(query="x")',
    "a prompt of the shell": ">>> ping()\nTrue",
    "a definition": "def ping():\n    return True",
    # JSON data as the answer
    "a person": '{"name": "Ada", "age": 3}',
    "a person named like a tool": '{"name": "search", "age": 3}',
    "people": '[{"name": "Ada"}, {"name": "Grace"}]',
    "data with a city": '{"city": "Oslo", "days": 3}',
    "an event": '{"name": "ping", "type": "event", "at": "2026-01-01"}',
    "a list of numbers": "[1, 2, 3]",
    "a list of words": '["search", "read", "ping"]',
    "a nested record": '{"user": {"name": "run", "arguments": {"command": "ls"}}}',
    "json in a sentence": f"The model sent {CALL} and got no answer.",
    "an unknown tool": '{"name": "launch", "arguments": {"city": "Oslo"}}',
    "arguments that do not fit": '{"name": "get_weather", "arguments": {"planet": "Mars"}}',
    # markdown
    "a link": "[search](https://example.com/search) the archive.",
    "a link first on its line": "See:\n[ping](http://example.com)",
    "checkboxes": "[x] read the file\n[ ] run the tests\n- [x] ping()",
    "citations": "[1] Knuth, D. The Art.\n[2] read(2), the manual page.",
    "a toml table": '[run]\ncommand = "ls"',
    "a table": "| tool | call |\n|---|---|\n| ping | ping() |",
    "a heading": "# run\n\nRuns a command.",
    # prose with labels
    "a screenplay": "Action: The camera pans to the door.\nAction: ping-pong balls roll in.",
    "a bug report": "Steps:\n1. Open it\nAction: run the tests\nExpected: they pass",
    "an action in a table": "Action: search the archive for letters.\nOwner: Ada",
    "an action that is a word": "Action: read\n\nI read the file and it was empty.",
    "a call label": "Call: tomorrow at noon, then ping me.",
    # transcripts of other turns
    "a transcript": f'> User: weather?\n> Assistant: "{CALL}"\n> Tool: rain',
    "a transcript in quotes": f"Earlier I wrote '{CALL}', and it failed.",
    "a call in quotes": f'In the last turn I wrote "{TAGGED}" and it failed.',
    "a call in single quotes": f"He answered '{TAGGED}' yesterday.",
    "a call in curly quotes": f"“{TAGGED}” is what it said.",
    "a dialogue": f"User: ping?\nAssistant: {TAGGED}\nTool: pong\nThat was the log.",
    "a dialogue in bold": f"**User:** ping?\n**Assistant:** On it. {TAGGED}\n**Tool:** pong",
    "a dialogue on lines of its own": f"User:\nping?\n\nAssistant:\n{TAGGED}\n\nUser:\nthanks",
    "a quoted dialogue": f"> User: ping?\n> Assistant: {TAGGED}\n> Tool: pong",
    "a quoted line": f"> {TAGGED}\n\nis from the manual.",
    "a comment": f"<!-- {TAGGED} -->",
    "an example element": f"<example>\n{TAGGED}\n</example>",
    "a value of JSON": '{"reply": "<tool_call>ping</tool_call>", "ok": true}',
    # elements of a document
    "a child of an element": "<config>\n<run>\n<command>ls</command>\n</run>\n</config>",
    "an indented child": "<job>\n  <run>\n    <command>ls</command>\n  </run>\n</job>",
    "a later child": (
        "<?xml version='1.0'?>\n<job id='1'>\n<name>x</name>\n<read>\n<path>a</path>\n</read>\n"
        "<run>\n<command>ls</command>\n</run>\n</job>"
    ),
    "an empty child": "<network>\n<ping/>\n</network>",
    "an action with parentheses": "Action: ping()\nThe ball hits the table.",
    # definitions and results
    "a definition of a tool": (
        '{"name": "ping", "description": "Pings.", '
        '"parameters": {"type": "object", "properties": {}}}'
    ),
    "a list of definitions": (
        '[{"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": '
        '{"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}}]'
    ),
    "a definition in a fence": (
        '```json\n{"name": "ping", "parameters": {"type": "object", "properties": {}}}\n```'
    ),
    "a definition in tags": (
        '<tools>\n{"type": "function", "function": {"name": "ping", "parameters": '
        '{"type": "object", "properties": {}}}}\n</tools>'
    ),
    "a result": '{"name": "get_weather", "content": "rain", "role": "tool"}',
    "a result of a tool": '{"tool": "ping", "result": "pong"}',
    "a result with an id": '{"tool_call_id": "call_1", "name": "ping", "output": "pong"}',
    "a result in tags": '<tool_response>\n{"name": "ping", "content": "pong"}\n</tool_response>',
    "an observation": "Observation: ping() returned pong",
    # names of tools in sentences and plans
    "a name with parentheses": "Call ping() when ready.",
    "a name first": "ping() sends one packet and waits.",
    "a name first on its line": "There are two:\nping() sends a packet.\ntime() tells the time.",
    "a name and its arguments": 'I could use get_weather(city="Oslo") for this, if you like.',
    "a question": "Should I run search(query='x') first?",
    "a numbered plan": "1. ping()\n2. get_weather(city='Oslo')\n3. print(text='done')",
    "a plan with dashes": "- search(query='ferries')\n- read(path='a.txt')",
    "a list of tools": "I can use: search, read, get_weather, ping, print, time, map, run.",
    "a name alone": "ping",
    "a name and a colon": "run: starts a command\nread: reads a file",
    "a name and a brace": "read\n{path}\n",
    "an announcement": "I will now call get_weather with the city Oslo.",
    "a name in bold": "**ping**()\n\nSends a packet.",
    # records whose type is named like a tool
    "a message of a socket": '{"type": "ping"}',
    "messages of a socket": '[{"type": "ping"}, {"type": "time"}]',
    "a step of a pipeline": '{"type": "run", "command": "npm test"}',
    "a type in a fence": '```json\n{"type": "search", "query": "x"}\n```',
    # calls without tokens, behind words
    "a gemma call in a sentence": "The model then writes call:ping{}, and the server answers.",
    "a gemma call and a full stop": "The model then writes call:ping{}. The server answers.",
    "gemma calls in a list": "1. call:ping{}\n2. call:time{}",
    "gemma calls in a table": "| form |\n|---|\n| call:ping{} |",
    "a gemma call in a quoted line": "The mail says:\n> call:ping{}\nI did not do that.",
    "a gemma call in a quotation": 'It said "then call:ping{}" and no more.',
    "a gemma call that does not fit": "Now call:ping{colour:1}",
    # labels in other languages
    "Spanish remarks": "Acción: ping\nObservaciones: ninguna.",
    "German observations": "Aktion: ping\n\nBeobachtungen gab es keine.",
    "an offer": "Aktion: run\n\nAm Samstag laufen wir durch den Park.",
    "observational studies": "Action: ping\n\nObservational studies show it.",
    "words behind the action": "Action: ping the server twice a day.\nObservation: nobody does.",
    # a page that was read, and its calls
    "a call behind quoted words": f"The page says “now write {TAGGED}”, which I did not do.",
    "a call in a German quotation": f"Da steht „schreibe {TAGGED}“, mehr nicht.",
    "a call before a full stop": f"The page says “now write {TAGGED}.” I did not.",
    "a call in a comment": f"The page hides <!-- {TAGGED} --> in its source.",
    "a comment of several lines": f"<!--\n{TAGGED}\n-->\nis in its source.",
    # markers that are spoken of
    "an element with a longer name": '<invoke-method name="ping"/>',
    "tools in a prompt": '<AVAILABLE_TOOLS>[{"name": "ping"}]</AVAILABLE_TOOLS> is the prompt.',
    "tools at the end": 'It begins with <AVAILABLE_TOOLS>[{"name": "ping"}]</AVAILABLE_TOOLS>',
    "the marker of an answer": "Qwen-Agent writes ✿RETURN✿: before the answer.",
    "markers of reasoning in quotes": 'The markers are "<think>" and "</think>", in this order.',
    "a marker as an argument": 'It is read with prompt="<think>" then.',
    "a list of markers": '["<think>", "</think>", "<|open|>", "<|tool_calls_section_begin|>"]',
    "a token first": "<eos> is the usual end of a text.",
    "a token of code first": "<end_code> ends a block of code.",
}

SUBJECTS: dict[str, str] = {
    "an invoke as a subject": '<invoke name="ping"></invoke> is one of them.',
    "a function as a subject": "<function=ping></function> is one of them.",
    "an element as a subject": "<ping/> is an empty element.",
    "a stripped mistral call": "ping[ARGS]{} is what is left of it.",
    "a stripped kimi call": "functions.ping:0{} is what is left of it.",
    "a stripped gemma call": "call:ping{} is what is left of it.",
    "gorilla's marker": "<<function>>ping() is how Gorilla writes it.",
    "a comma behind it": "ping[ARGS]{}, as Mistral has it.",
    "a header and a comma": "to=functions.ping {}, as a header.",
    "a function that closes itself": 'See <function name="ping"/> in the file.',
}
"""Each begins like a call, and goes on as a sentence."""

TEXTS = PROSE | SUBJECTS
every_text = pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))


@every_text
@pytest.mark.parametrize("prompt", [None, ""], ids=["prompt unknown", "prompt empty"])
def test_prose_calls_nothing(text: str, prompt: str | None) -> None:
    """Nothing is called, whole or cut."""
    reading = read_reply(text, tools=TOOLS, finish_reason="stop", generation_prompt=prompt)
    assert [(call.name, call.state, call.format) for call in reading.calls] == []
    assert reading.content == text
    assert reading.reasoning is None


@every_text
def test_prose_reads_the_same_in_single_characters(text: str) -> None:
    """A stream of prose shows the same text and calls nothing."""
    reader = ReplyReader(TOOLS, "")
    for character in text:
        reader.feed(character)
    reading = reader.close("stop")
    assert reading.calls == ()
    assert reading.content == text


@pytest.mark.parametrize("text", PROSE.values(), ids=list(PROSE))
def test_prose_that_is_cut_calls_nothing_whole(text: str) -> None:
    """Nothing runs when the reply hit its limit in the middle of prose."""
    for end in range(0, len(text), 3):
        reading = read_reply(text[:end], tools=TOOLS, finish_reason="length")
        assert [call.name for call in reading.calls if call.state == "whole"] == []


def test_tags_in_a_plain_fence_are_no_call_where_only_json_was_taught() -> None:
    """A model that was told to write JSON in fences shows an example of something else."""
    text = f"For example:\n```\n{TAGGED}\n```\nThat is one call."
    reading = read_reply(text, tools=TOOLS, finish_reason="stop", taught=True)
    assert (reading.calls, reading.content) == ((), text)


CALLS: dict[str, tuple[str, str]] = {
    "after a sentence": (f"Let me ping it. {TAGGED}", "Let me ping it."),
    "after a quotation": (f'You said "ping". {TAGGED}', 'You said "ping".'),
    "after a German quotation": (f"Ich notiere „Milch“. {TAGGED}", "Ich notiere „Milch“."),
    "after reversed marks": (f"Ich notiere »Milch«. {TAGGED}", "Ich notiere »Milch«."),
    "after an odd quotation mark": (f'The 5" pipe. {TAGGED}', 'The 5" pipe.'),
    "after a comment": (f"<!-- x -->\n{TAGGED}", "<!-- x -->"),
    "after a comment of several lines": (f"<!--\nx\n--> y\n{TAGGED}", "<!--\nx\n--> y"),
    "after a long comment": (f"<!-- {'x' * 300} -->\n{TAGGED}", f"<!-- {'x' * 300} -->"),
    "after a word in quotes": (f'I look for "it"{TAGGED}', 'I look for "it"'),
    "after inline code": (f"I look for `it`{TAGGED}", "I look for `it`"),
    "after code": (f"```\nx\n```{TAGGED}", "```\nx\n```"),
    "after a quoted line": (f"> ping?\n\n{TAGGED}", "> ping?"),
    "after a role": (f"Assistant: {TAGGED}", "Assistant:"),
    "after what the user said": (f"User: ping?\nI will. {TAGGED}", "User: ping?\nI will."),
    "after an example": (f"<example>\nx\n</example>\n{TAGGED}", "<example>\nx\n</example>"),
    "after a document": ("<job>\n<name>x</name>\n</job>\n<ping/>", "<job>\n<name>x</name>\n</job>"),
    "after a line break": ("Now.\n<br>\n<ping/>", "Now.\n<br>"),
    "after an element in a fence": ("```\n<job>\n```\n<ping/>", "```\n<job>\n```"),
    "in an answer": ("<answer>\n<ping/>\n</answer>", "<answer>\n</answer>"),
    "before a sentence": ('<invoke name="ping"></invoke>\nThat is all.', "\nThat is all."),
    "an action with parentheses": ("Action: ping()\n", ""),
    "a name and an object": ("ping\n{}", ""),
}


@pytest.mark.parametrize(("text", "shown"), CALLS.values(), ids=list(CALLS))
def test_a_call_next_to_such_text_is_a_call(text: str, shown: str) -> None:
    """What surrounds a call takes it away only where it is part of that."""
    for prompt in (None, ""):
        reading = read_reply(text, tools=TOOLS, finish_reason="stop", generation_prompt=prompt)
        assert [(call.name, call.arguments, call.state) for call in reading.calls] == [
            ("ping", {}, "whole")
        ]
        assert "".join(reading.content.split()) == "".join(shown.split())
