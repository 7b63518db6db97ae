"""An HTTP/1.1 client for one upstream: little work for each request, and nothing taken on trust.

`framing` says where a reply begins and ends, `requests` renders what is sent, `answers` hands a
reply to its reader, `connections` watches one socket, and `pool` keeps the sockets of an origin.
"""

from .answers import Answer
from .limits import ClientLimits
from .pool import Origin
from .requests import RequestHead

__all__ = ["Answer", "ClientLimits", "Origin", "RequestHead"]
