"""One connection of a client of the gateway: repeated heads and usual replies cost little."""

from surecall.serving import Exchange, HttpConnection, RawHeaders
from surecall.serving.connection import STATUS_LINES

from .heads import Head, Hosts

_REPLY = (
    b"%bcontent-type: application/json\r\ncontent-length: %d\r\nx-surecall-outcome: %b\r\n"
    b"x-surecall-request-id: %b\r\nx-surecall-receipts: %d\r\n"
    b"x-surecall-upstream: %b\r\nx-surecall-attempts: %b\r\n\r\n%b"
)
_MAX_SEEN_HEADERS = 64


class GatewayConnection(HttpConnection):
    """One connection of a client."""

    _seen: tuple[RawHeaders, Hosts, Head] | None = None
    """The last headers, whose they are compared with, and what they say."""

    def read_head(self, headers: RawHeaders, hosts: Hosts) -> Head:
        """Return what the headers of a request say; clients send the same ones again and again."""
        seen = self._seen
        if seen is not None and seen[1] is hosts and seen[0] == headers:
            return seen[2]
        head = Head(headers, *hosts.at(self.address))
        self._seen = (headers, hosts, head) if len(headers) <= _MAX_SEEN_HEADERS else None
        return head

    @property
    def is_crowded(self) -> bool:
        """Whether there are more connections than requests are taken from."""
        return len(self.keeper.connections) > self.limits.max_connections

    def take_body(self, exchange: Exchange) -> bytes | None:
        """Take the body of a request if all of it is there."""
        if not exchange.is_whole or self.is_lost:
            return None
        body, exchange.body = exchange.body, b""
        return bytes(body)

    def write_reply(
        self,
        exchange: Exchange,
        status: int,
        outcome: str,
        receipts: int,
        *,
        of: str,
        trail: tuple[bytes, bytes],
        body: bytes,
    ) -> None:
        """Write a whole reply with no headers but the usual ones.

        `of` is the id of the request; `trail` is the upstream that answered, and all attempts.
        """
        named = (outcome.encode(), of.encode(), receipts, *trail)
        usual = (STATUS_LINES[status], len(body), *named, body)
        self.write_answer(exchange, _REPLY % usual)
