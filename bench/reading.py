"""What reading a reply costs: arguments, structured replies, text replies, hostile text.

    python bench/reading.py [--rounds 15] [--size 1000000] [--only PART] [--against SRC]

Tools are given as a program has them, a list of objects of a wire format, and nothing is prepared.
`--against` compares whole replies with other sources of surecall, such as those that
`git archive COMMIT src | tar -x -C DIR` puts in `DIR/src`; both take turns.

Compare the ratios; the times belong to the machine. `bench/repair.py` compares the repair of
arguments with other libraries.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec

from surecall.base.records import RawCall, Reading, Reply, ToolCall, Usage
from surecall.reading import read_arguments, read_reply
from surecall.text import Repaired, repair_json
from surecall.wire import RawReply

DECODE = msgspec.json.Decoder().decode
BODY = "Payment requests from Europe take over 30 seconds since the last deploy. "
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "save_note",
            "description": "Save a note.",
            "parameters": {
                "type": "object",
                "properties": {
                    "title": {"type": "string"},
                    "body": {"type": "string"},
                    "level": {"type": "integer"},
                },
                "required": ["title", "body"],
            },
        },
    }
]


def arguments(size: int) -> dict[str, Any]:
    return {"title": "Checkout", "body": (BODY * (size // len(BODY) + 1))[:size], "level": 3}


def families(size: int) -> dict[str, str]:
    """Return one text reply of each family, with an argument of the given size."""
    values = arguments(size)
    call = json.dumps({"name": "save_note", "arguments": values})
    text = json.dumps(values)
    body = values["body"]
    python = f"save_note(title='Checkout', body={body!r}, level=3)"
    xml = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items())
    named = "".join(
        f'<parameter name="{key}">{value}</parameter>\n' for key, value in values.items()
    )
    pairs = "".join(
        f"<arg_key>{key}</arg_key><arg_value>{value}</arg_value>" for key, value in values.items()
    )
    dsml = "".join(
        f'<｜DSML｜parameter name="{key}" string="{str(isinstance(value, str)).lower()}">{value}'
        "</｜DSML｜parameter>\n"
        for key, value in values.items()
    )
    gemma = f'title:<|"|>Checkout<|"|>,body:<|"|>{body}<|"|>,level:3'
    return {
        "prose": f"I will save a note about this. {body}",
        "tool_call json": f"Saving.\n<tool_call>\n{call}\n</tool_call>",
        "qwen xml": f"<tool_call>\n<function=save_note>\n{xml}</function>\n</tool_call>",
        "glm": f"<tool_call>save_note{pairs}</tool_call>",
        "invoke": f'<function_calls>\n<invoke name="save_note">\n{named}</invoke>\n'
        "</function_calls>",
        "dsml": f'<｜DSML｜tool_calls>\n<｜DSML｜invoke name="save_note">\n{dsml}'
        "</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
        "mistral": f"[TOOL_CALLS]save_note[ARGS]{text}",
        "deepseek": f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>save_note<｜tool▁sep｜>{text}"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.save_note:0"
        f"<|tool_call_argument_begin|>{text}<|tool_call_end|><|tool_calls_section_end|>",
        "harmony": "<|channel|>commentary to=functions.save_note <|constrain|>json<|message|>"
        f"{text}<|call|>",
        "gemma": f"<|tool_call>call:save_note{{{gemma}}}<tool_call|>",
        "pythonic": f"[{python}]",
        "bare json": call,
        "fenced json": f"```json\n{call}\n```",
        "react": f"Thought: save it\nAction: save_note\nAction Input: {text}",
    }


def microseconds(run: Callable[[], object], rounds: int, budget_s: float = 0.02) -> float:
    """Return the best time of a call over several rounds."""
    started = time.perf_counter()
    run()
    once = time.perf_counter() - started
    number = max(1, int(budget_s / max(once, 1e-7)))
    best = once
    for _ in range(rounds):
        started = time.perf_counter()
        for _ in range(number):
            run()
        best = min(best, (time.perf_counter() - started) / number)
    return best * 1e6


def interleaved(runs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the best times of some calls that take turns."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            best[name] = min(best[name], microseconds(run, 1, 0.005))
    return best


def bare_arguments(text: str) -> Repaired:
    """Decode and make one record: what no check at all would cost."""
    return Repaired(DECODE(text))


def valid_arguments(rounds: int) -> None:
    """Compare reading valid arguments with decoding them."""
    plain = json.dumps({**arguments(700), "priority": "high", "tags": ["a", "b", "c"]})
    timed = plain.replace(BODY[:9], "At 14:05 ", 2)
    nested = json.dumps({"order": {"id": 3, "items": [{"sku": "a"}, {"sku": "b"}]}, "note": plain})
    columns = ("msgspec", "one record", "repair_json", "read_arguments", "json")
    print(f"{'valid arguments, us':31}" + "".join(f"{name:>21}" for name in columns))
    for label, text in {
        "flat, no colon in a text": plain,
        "flat, colons in a text": timed,
        "nested": nested,
        "of 17 bytes": '{"city": "Paris"}',
    }.items():
        best = interleaved(
            {
                "msgspec": partial(DECODE, text),
                "one record": partial(bare_arguments, text),
                "repair_json": partial(repair_json, text),
                "read_arguments": partial(read_arguments, text),
                "json": partial(json.loads, text),
            },
            rounds,
        )
        floor = best["msgspec"]
        cells = "".join(f"{us:>13.2f} x{us / floor:>5.2f} " for us in best.values())
        print(f"{label:31}{cells}")
    print()


def bare_reply(body: bytes) -> Reading:
    """Decode a reply and make the records of its reading, with no check at all."""
    document = DECODE(body)
    choice, usage = document["choices"][0], document["usage"]
    raw = RawReply(
        message=choice["message"],
        finish_reason=choice["finish_reason"],
        usage=Usage(usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]),
        model=document["model"],
        id=document["id"],
    )
    calls = tuple(
        [
            RawCall(entry["id"], entry["function"]["name"], entry["function"]["arguments"])
            for entry in raw.message["tool_calls"]
        ]
    )
    reply = Reply(calls=calls, finish_reason=raw.finish_reason, usage=raw.usage, model=raw.model)
    read = [
        ToolCall(id=call.id, name=call.name, arguments=DECODE(call.arguments), raw=call.arguments)
        for call in reply.calls
    ]
    return Reading(calls=tuple(read), finish_reason=reply.finish_reason)


def clean_body(calls: int, size: int) -> dict[str, Any]:
    """Return the body of a reply with clean calls, as a provider sends it."""
    function = {"name": "save_note", "arguments": json.dumps(arguments(size))}
    entry = {"id": "call_1", "type": "function", "function": function}
    entries = [{**entry, "id": f"call_{number}"} for number in range(calls)]
    message = {"role": "assistant", "content": None, "tool_calls": entries}
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def structured(rounds: int) -> None:
    """Compare `read_reply(body, tools=[...])` with decoding the body and the arguments alone."""
    columns = ("msgspec", "json", "records", "bytes", "dict", "no tools")
    print(f"{'a clean structured reply, us':31}" + "".join(f"{name:>10}" for name in columns))
    for calls, size in ((1, 200), (1, 1000), (4, 1000), (1, 20_000)):
        body = clean_body(calls, size)
        data = json.dumps(body).encode()

        def decode(load: Callable[[Any], Any], data: bytes = data) -> None:
            value = load(data)
            for call in value["choices"][0]["message"]["tool_calls"]:
                load(call["function"]["arguments"])

        best = interleaved(
            {
                "msgspec": partial(decode, DECODE),
                "json": partial(decode, json.loads),
                "records": partial(bare_reply, data),
                "bytes": partial(read_reply, data, tools=TOOLS),
                "dict": partial(read_reply, body, tools=TOOLS),
                "no tools": partial(read_reply, data),
            },
            rounds,
        )
        label = f"{calls} x {size} bytes of arguments"
        print(f"{label:31}" + "".join(f"{best[name]:>10.1f}" for name in columns))


def texts(rounds: int) -> None:
    print(f"\n{'a text reply':20}{'2 KB us':>10}{'200 KB us':>12}{'growth':>9}   format")
    small, large = families(2_000), families(200_000)
    for name, text in small.items():
        reading = read_reply(text, tools=TOOLS, finish_reason="stop")
        found = reading.calls[0].format if reading.calls else "-"
        short = microseconds(lambda: read_reply(text, tools=TOOLS), rounds)  # noqa: B023
        long = microseconds(lambda: read_reply(large[name], tools=TOOLS), min(rounds, 5))  # noqa: B023
        print(f"{name:20}{short:>10.0f}{long:>12.0f}{long / short:>9.1f}   {found}")


def compared_replies() -> dict[str, Any]:
    """Return calls with 200 characters, in their field and in tags, and answers without a call."""
    prose = BODY * 12
    code = "```python\nfor row in rows:\n    print(row[0], {'a': 1})\n```\n"
    call = json.dumps({"name": "save_note", "arguments": arguments(200)})
    damaged = clean_body(1, 200)
    function = damaged["choices"][0]["message"]["tool_calls"][0]["function"]
    function["arguments"] = function["arguments"].replace('"level": 3', "'level': 3,")
    return {
        "body": clean_body(1, 200),
        "body as bytes": json.dumps(clean_body(1, 200)).encode(),
        "damaged body": damaged,
        "clean": f"Saving.\n<tool_call>\n{call}\n</tool_call>",
        "no closer": f"Saving.\n<tool_call>\n{call}\n",
        "no brace": f"Saving.\n<tool_call>\n{call[:-1]}\n</tool_call>",
        "single quotes": "Saving.\n<tool_call>\n" + call.replace('"', "'") + "\n</tool_call>",
        "prose": prose,
        "short prose": "It is sunny in Oslo today, with 20 degrees.",
        "prose with code": f"{prose}\n\n{code}\n{prose}\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
        "prose with JSON": f'{prose}\n\n{{"title": "Checkout", "rows": [1, 2, 3]}}\n\n{prose}',
        "100 KB of prose with code": f"{prose}\n\n{code}\n" * 104,
        "prose with the name": f"{prose} The tool save_note (for notes) was not needed. {prose}",
    }


def time_replies() -> None:
    """Print the times of the replies that are compared as JSON."""
    runs = {
        label: partial(read_reply, reply, tools=TOOLS, finish_reason="tool_calls")
        for label, reply in compared_replies().items()
    }
    print(json.dumps(interleaved(runs, 5)))


def compare(other: str, rounds: int) -> None:
    """Compare reading whole replies with other sources."""
    best: dict[str, dict[str, float]] = {"own": {}, other: {}}
    for _ in range(rounds):
        for source, times in best.items():
            environment = {**os.environ, **({} if source == "own" else {"PYTHONPATH": other})}
            command = [sys.executable, __file__, "--only", "replies"]
            printed = subprocess.run(command, env=environment, capture_output=True, check=True)
            for label, us in json.loads(printed.stdout).items():
                times[label] = min(times.get(label, us), us)
    print(f"{'a whole reply':26}{'own us':>10}{'other us':>10}{'times as fast':>15}")
    for label, us in best["own"].items():
        print(f"{label:26}{us:>10.1f}{best[other][label]:>10.1f}{best[other][label] / us:>15.2f}")


def hostile(size: int) -> None:
    seeds = [
        "[", '{"a":', '"', "\\", "<tool_call>", '<tool_call>{"name":"save_note"', "<think>",
        "</think>", "```\n", "```json\n{", "`", "`x", "Action: save_note\n", "<function=save_note>",
        "<parameter=x>", '<invoke name="save_note">', "<arg_key>x</arg_key><arg_value>",
        '<｜DSML｜invoke name="save_note">', "<|channel|>", "<|start|>assistant",
        "<|tool_call_begin|>",
        "[TOOL_CALLS]", "<|tool_call>call:save_note{", "save_note(", "<", "<|", '{"name":"x"}\n',
        "<save_note>", "<|im_end|>", "functools[", "hello world ", '{"name":{"x":1}}\n',
        "{'name':'x'}\n", '[{"name":"x"}]\n', '{"name":"x" \n', '```json\n{"name":"x"}\n```\n',
        'save_note(title="a")\n', "[save_note(title='a')]\n",
        '<tool_call>\n{"name":"x"}\n</tool_call>\n', "<think>save_note\n", "| <think>", "<|think|>",
        "“<think>\nsave_note\n{", "“to=self<|message|>\nsave_note\n{", "“«\nsave_note\n{",
        '> <tool_calls>{"name":"save_note"', '{{"name":"save_note","arguments":{"title":"a"}}\n',
        "“<|recipient|>\nsave_note\n{", "<|channel|>final<|message|>\nsave_note\n{",
        '> functools[{"name":"save_note","arguments":{"title":"a"}}\n',
    ]  # fmt: skip
    print(f"\n{'hostile text, CPU':34}{size // 2:>12,}{size:>14,}{'growth':>9}")
    for seed in seeds:
        times: list[float] = []
        read_reply(seed * 3, tools=TOOLS)  # loads what only this text needs
        for length in (size // 2, size):
            text = (seed * (length // len(seed) + 1))[:length]
            started = time.process_time()
            read_reply(text, tools=TOOLS)
            times.append((time.process_time() - started) * 1000)
        growth = times[1] / max(times[0], 1.0)
        print(f"{seed[:30]!r:34}{times[0]:>9.0f} ms{times[1]:>11.0f} ms{growth:>9.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument(
        "--only", choices=("arguments", "structured", "texts", "hostile", "replies")
    )
    parser.add_argument("--against", metavar="SRC", help="sources to compare with")
    options = parser.parse_args()
    if options.only == "replies":
        time_replies()
        return
    print(
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {platform.python_implementation()} "
        f"{platform.python_version()}, {os.cpu_count()} cores, best of {options.rounds} rounds\n"
    )
    if options.against:
        compare(options.against, options.rounds)
        return
    if options.only in {None, "arguments"}:
        valid_arguments(options.rounds)
    if options.only in {None, "structured"}:
        structured(options.rounds)
    if options.only in {None, "texts"}:
        texts(options.rounds)
    if options.only in {None, "hostile"}:
        hostile(options.size)


if __name__ == "__main__":
    main()
