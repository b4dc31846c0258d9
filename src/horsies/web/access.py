"""Who may see and who may steer: viewers, their roles, and the rule for this machine's users."""

import ipaddress
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from inspect import isawaitable
from typing import TypeAlias

from starlette.requests import HTTPConnection
from starlette.responses import Response

LOCAL_USER = "local user"
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


class Role(Enum):
    """A reader sees everything, an operator also steers."""

    READER = "read-only"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Viewer:
    """Someone who may look. `name` is what the audit table shows for what they do.

    `how_to_steer` is what pages say to a reader about becoming an operator.
    """

    name: str
    role: Role = Role.READER
    how_to_steer: str = "Ask the person who runs this dashboard for the role operator."

    @property
    def may_steer(self) -> bool:
        return self.role is Role.OPERATOR


NOBODY = Viewer("nobody")
# A viewer; `None` refuses; a response is sent as it is, such as a redirect to a login page.
Answer: TypeAlias = Viewer | Response | None
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Authenticate: TypeAlias = Callable[[HTTPConnection], Answer | Awaitable[Answer]]


async def who_is(connection: HTTPConnection, authenticate: Authenticate) -> Answer:
    answer = authenticate(connection)
    return await answer if isawaitable(answer) else answer


def local_viewers(connection: HTTPConnection) -> Viewer | None:
    """Let users of this machine look, and nobody else.

    They do not steer: a proxy on this machine may hand strangers on without any sign of it. A
    request that bears such a sign is refused.
    """
    if _is_forwarded(connection) or not is_loopback(peer_of(connection)):
        return None
    return Viewer(LOCAL_USER, how_to_steer="To let people steer, set `authenticate` of create_app.")


def socket_viewers(connection: HTTPConnection) -> Viewer | None:
    """Let everyone who may open our Unix socket steer: the mode of its file decides who that is."""
    if _is_forwarded(connection) or connection.client is not None:
        return None
    return Viewer(LOCAL_USER, Role.OPERATOR)


def _is_forwarded(connection: HTTPConnection) -> bool:
    return any(name in connection.headers for name in _FORWARDED)


def networks_of(addresses: Sequence[str]) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(address) for address in addresses)


def is_from(connection: HTTPConnection, networks: Sequence[Network]) -> bool:
    """Whether a request comes straight from one of these addresses."""
    try:
        peer = ipaddress.ip_address(peer_of(connection))
    except ValueError:
        return False
    return any(peer in network for network in networks)


def peer_of(connection: HTTPConnection) -> str:
    return connection.client.host if connection.client else ""


@dataclass(frozen=True, slots=True)
class OnlyReading:
    """Lets the same people in, but nobody steer."""

    authenticate: Authenticate

    async def __call__(self, connection: HTTPConnection) -> Answer:
        answer = await who_is(connection, self.authenticate)
        if not isinstance(answer, Viewer):
            return answer
        return Viewer(answer.name, how_to_steer="This dashboard is read-only for everyone.")


def is_loopback(host: str) -> bool:
    """Whether a host, by name or by address, is this machine and reached by nobody else."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
