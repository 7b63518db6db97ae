"""A call waits until somebody decides about it in a browser: no key, no network.

python examples/web_approval
surecall serve --approvals approvals.db        in another terminal

Then open http://127.0.0.1:8787/ui/approvals. You may stop this program while the call waits:
python examples/web_approval RUN goes on with it.
"""

import argparse
import asyncio
from typing import Any

import surecall
from surecall import assistant, tool_call
from surecall.store import DatabaseStore, open_store


@surecall.tool(effect="external", approval="required")
def send_mail(to: str, subject: str, copies: int = 1) -> dict[str, Any]:
    """Send a mail to somebody."""
    print(f"sent      {subject!r} to {to}, {copies} times")
    return {"sent": copies}


async def begin(store: DatabaseStore) -> str:
    """Start a run whose one call waits, and return the id of the run."""
    call = tool_call("send_mail", {"to": "ann@example.org", "subject": "Invoice", "copies": "2"})
    result = await surecall.run(
        "Send the invoice to Ann.",
        model="demo",
        tools=[send_mail],
        approvals=store,
        transport=surecall.ScriptedTransport([assistant(None, call)]),
    )
    return result.run_id


async def wait(store: DatabaseStore, run_id: str, every_s: float = 1.0) -> None:
    """Wait until nothing of the run is pending."""
    while await store.list(status="pending", run_id=run_id):  # noqa: ASYNC110 - another process decides
        await asyncio.sleep(every_s)


async def main(run_id: str | None, place: str, every_s: float = 1.0) -> surecall.RunResult:
    """Begin a run or take up an old one, wait for the decision, and go on."""
    async with open_store(place) as store:
        run_id = run_id or await begin(store)
        print(f"waiting   run {run_id} in {place}")
        await wait(store, run_id, every_s)
        (approval,) = await store.list(run_id=run_id)
        print(f"decided   {approval.status} by {approval.decided_by or 'nobody'}")
        result = await surecall.resume(
            run_id,
            tools=[send_mail],
            approvals=store,
            transport=surecall.ScriptedTransport(["Ready."]),
        )
    print(f"model     {result.text}")
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", nargs="?", help="a run that waits")
    parser.add_argument("--store", default="approvals.db")
    options = parser.parse_args()
    asyncio.run(main(options.run, options.store))
