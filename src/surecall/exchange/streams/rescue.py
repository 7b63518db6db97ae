"""A call inside an error, as some endpoints answer what they cannot read, becomes a stream."""

from msgspec.structs import replace

from surecall.exchange.mediation import mediate
from surecall.exchange.policy import Ending, Policy, Route, Sent
from surecall.exchange.request import ClientRequest

from .relay import StreamRelay


async def rescue_call(
    sent: Sent, request: ClientRequest, route: Route, policy: Policy, *, request_id: str = ""
) -> Ending | None:
    """Return the stream that delivers the call which an error holds, or `None` without one."""

    async def send(_: bytes) -> Sent:
        return sent

    one = replace(policy, max_requests=1, show_receipts=False)
    delivered = await mediate(request, route, one, send)
    if delivered.error is not None or not delivered.calls:
        return None
    own = Route(protocol=request.protocol, model=route.model)
    relay = StreamRelay(request, own, one, request_id=request_id)
    written = relay.feed(delivered.body)
    ending = relay.finish()
    if ending.error is not None or ending.ask is not None:
        return None
    return Ending(data=written + ending.data, **delivered.report())
