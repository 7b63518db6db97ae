"""What a tool loop costs: the same three-request loop by surecall, raw aiohttp and other libraries.

    python bench/loop.py [--rounds 5] [--runs 200] [--only NAME...] [--out results.json]

One stub server answers every contender: two replies with one tool call each, then a text. Each
contender runs in a process of its own, the contenders take turns, and all run on this machine in
the same minutes: compare the ratios, not the milliseconds. Libraries that are not installed for
the interpreter (or under `--peers DIR`, one virtual environment each) are left out and named.
"""

import argparse
import asyncio
import json
import os
import re
import resource
import statistics
import subprocess
import time
from pathlib import Path

from ticket_stub import (
    TOOL,
    create_ticket,
    interpreter_of,
    machine,
    running_stub,
    tell_missing,
)

HERE = Path(__file__).resolve()
PROMPT = "Checkout times out for customers in Europe since the last deploy. File two tickets."
FINAL = "Both tickets are filed."
PACKAGES = {
    "raw_aiohttp": ("aiohttp", "aiohttp"),
    "surecall": ("surecall", "surecall"),
    "surecall_quick": ("surecall", "surecall"),
    "openai": ("openai", "openai"),
    "pydantic_ai": ("pydantic_ai", "pydantic_ai, pydantic_ai.models.openai"),
    "openai_agents": ("agents", "agents"),
    "langchain": ("langchain", "langchain.agents, langchain_openai"),
}
FLOOR = "raw_aiohttp"


# the contenders: each returns an async function that does one whole loop


def raw_aiohttp(base: str):
    import aiohttp

    session = None

    async def run() -> str:
        nonlocal session
        if session is None:
            session = aiohttp.ClientSession(headers={"authorization": "Bearer sk-none"})
        messages: list[dict] = [{"role": "user", "content": PROMPT}]
        while True:
            body = {"model": "stub", "messages": messages, "tools": [TOOL]}
            async with session.post(base + "/chat/completions", json=body) as response:
                response.raise_for_status()
                message = (await response.json())["choices"][0]["message"]
            calls = message.get("tool_calls")
            if not calls:
                return message["content"]
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
            for call in calls:
                output = create_ticket(**json.loads(call["function"]["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})

    return run


def surecall(base: str, *, quick: bool = False):
    import surecall as package
    from surecall.models.transport import HttpTransport

    options = {"quick": True} if quick else {}  # sources of before have no such option
    ticket = package.tool(effect="write", **options)(create_ticket)
    transport = HttpTransport(base, api_key="sk-none")

    async def run() -> str:
        result = await package.run(PROMPT, model="stub", tools=[ticket], transport=transport)
        return result.text

    return run


def surecall_quick(base: str):
    """The same with the tool declared quick, so that it runs where the loop does, as in raw."""
    return surecall(base, quick=True)


def openai(base: str):
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=base, api_key="sk-none", max_retries=0)

    async def run() -> str:
        messages: list = [{"role": "user", "content": PROMPT}]
        while True:
            completion = await client.chat.completions.create(
                model="stub", messages=messages, tools=[TOOL]
            )
            message = completion.choices[0].message
            if not message.tool_calls:
                return message.content
            messages.append(message)
            for call in message.tool_calls:
                output = create_ticket(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": output})

    return run


def pydantic_ai(base: str):
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("stub", provider=OpenAIProvider(base_url=base, api_key="sk-none"))
    agent = Agent(model, tools=[create_ticket])

    async def run() -> str:
        return (await agent.run(PROMPT)).output

    return run


def openai_agents(base: str):
    import agents
    from openai import AsyncOpenAI

    agents.set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=base, api_key="sk-none", max_retries=0)
    agent = agents.Agent(
        name="bench",
        model=agents.OpenAIChatCompletionsModel(model="stub", openai_client=client),
        tools=[agents.function_tool(create_ticket)],
    )

    async def run() -> str:
        return (await agents.Runner.run(agent, PROMPT)).final_output

    return run


def langchain(base: str):
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="stub", base_url=base, api_key="sk-none", max_retries=0)
    agent = create_agent(model, [create_ticket])

    async def run() -> str:
        state = await agent.ainvoke({"messages": [{"role": "user", "content": PROMPT}]})
        return state["messages"][-1].content

    return run


CONTENDERS = {
    function.__name__: function
    for function in (
        raw_aiohttp,
        surecall,
        surecall_quick,
        openai,
        pydantic_ai,
        openai_agents,
        langchain,
    )
}


async def measure(name: str, base: str, runs: int) -> dict[str, float]:
    run = CONTENDERS[name](base)
    for _ in range(20):
        assert await run() == FINAL, "the loop did not end with the final text"
    times: list[float] = []
    cpu = time.process_time()
    for _ in range(runs):
        started = time.perf_counter()
        await run()
        times.append(time.perf_counter() - started)
    cpu = time.process_time() - cpu
    return {
        "cpu_ms": cpu / runs * 1000,
        "wall_ms": statistics.median(times) * 1000,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def import_ms(python: str, modules: str) -> float:
    def seconds(code: str) -> float:
        started = time.perf_counter()
        subprocess.run([python, "-c", code], check=True, capture_output=True)
        return time.perf_counter() - started

    pairs = [(seconds(f"import {modules}"), seconds("pass")) for _ in range(7)]
    loaded, bare = (statistics.median(column) for column in zip(*pairs, strict=True))
    return (loaded - bare) * 1000


def base_install() -> dict[str, float]:
    """Count what `pip install surecall` brings, by following its requirements."""
    from importlib.metadata import PackageNotFoundError, distribution

    seen: dict[str, float] = {}
    waiting = ["surecall"]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        files = [file for file in found.files or () if file.suffix != ".pyc"]
        seen[name] = sum(
            path.stat().st_size for file in files if (path := Path(file.locate())).is_file()
        )
        for line in found.requires or ():
            if "extra ==" not in line:
                name = re.match(r"[\w.-]+", line)
                waiting.append(name.group().lower().replace("_", "-") if name else "")
    source = HERE.parent.parent / "src" / "surecall"
    seen["surecall"] = sum(
        f.stat().st_size for f in source.rglob("*") if f.suffix != ".pyc" and f.is_file()
    )
    return {"packages": len(seen), "mb": sum(seen.values()) / 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--peers", type=Path, help="folder with one virtual environment a library")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--base", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(asyncio.run(measure(options.one, options.base, options.runs))))
        return
    compare(options)


def compare(options: argparse.Namespace) -> None:
    pythons = {
        name: interpreter_of(name, PACKAGES[name][0], options.peers) for name in options.only
    }
    present = {name: python for name, python in pythons.items() if python}
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in present}
    with running_stub(2, FINAL) as base:
        for _ in range(options.rounds):
            for name, python in present.items():
                command = [python, str(HERE), "--one", name, "--base", base]
                done = subprocess.run(
                    [*command, "--runs", str(options.runs)],
                    capture_output=True,
                    text=True,
                    check=True,
                    env={**os.environ, "PYTHONWARNINGS": "ignore"},
                )
                rounds[name].append(json.loads(done.stdout.splitlines()[-1]))
    report(options, present, pythons, rounds)


def report(options, present, pythons, rounds) -> None:
    print(f"{machine()}, {options.rounds} rounds of {options.runs} runs of 3 requests\n")
    print(
        f"{'':14}{'CPU ms/run':>11}{'spread':>15}{'x floor':>9}{'wall ms':>9}{'added':>8}"
        f"{'import ms':>11}{'RSS MB':>8}"
    )
    table: dict[str, dict[str, float]] = {}
    for name, python in present.items():
        cpus = [entry["cpu_ms"] for entry in rounds[name]]
        # The ratio is taken round by round, so that both sides had the same neighbours.
        ratios = [
            own["cpu_ms"] / floor["cpu_ms"]
            for own, floor in zip(rounds[name], rounds[FLOOR], strict=True)
        ]
        wall = statistics.median(entry["wall_ms"] for entry in rounds[name])
        floor_wall = statistics.median(entry["wall_ms"] for entry in rounds[FLOOR])
        table[name] = row = {
            "cpu_ms": statistics.median(cpus),
            "ratio": statistics.median(ratios),
            "wall_ms": wall,
            "added_ms": wall - floor_wall,
            "import_ms": import_ms(python, PACKAGES[name][1]),
            "rss_mb": statistics.median(entry["rss_mb"] for entry in rounds[name]),
        }
        spread = f"{min(cpus):.2f}-{max(cpus):.2f}"
        print(
            f"{name:14}{row['cpu_ms']:>11.2f}{spread:>15}{row['ratio']:>9.2f}{wall:>9.2f}"
            f"{row['added_ms']:>8.2f}{row['import_ms']:>11.0f}{row['rss_mb']:>8.0f}"
        )
    tell_missing(pythons)
    weight = base_install()
    print(f"\nbase install: {weight['packages']:.0f} packages, {weight['mb']:.1f} MB")
    if options.out:
        options.out.write_text(json.dumps({"table": table, "base_install": weight}, indent=1))


if __name__ == "__main__":
    main()
