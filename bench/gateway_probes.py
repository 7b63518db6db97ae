"""Requests that a process of its own makes beside the load, so that its own work delays none."""

import asyncio
import multiprocessing
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection

from gateway_processes import ask


def probe(port: int, path: str, body: bytes | None, pause_s: float, results: Connection) -> None:
    """Ask again and again, in a process of its own, until told to stop; send what was seen."""
    found: list[tuple[int, float]] = []
    while not results.poll(pause_s):
        began = time.perf_counter()
        try:
            status, _ = ask(port, body, path)
        except OSError:
            status = 0
        found.append((status, time.perf_counter() - began))
    results.send(found)


@asynccontextmanager
async def probing(
    port: int, path: str, body: bytes | None = None, pause_s: float = 0.05
) -> AsyncIterator[list[tuple[int, float]]]:
    """Ask from another process meanwhile; the list has status and seconds once this ends."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=probe, args=(port, path, body, pause_s, there)
    )
    process.start()
    found: list[tuple[int, float]] = []
    try:
        await asyncio.sleep(1)
        yield found
    finally:
        here.send(None)
        found += await asyncio.to_thread(here.recv)
        process.join()
