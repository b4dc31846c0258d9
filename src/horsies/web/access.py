"""Who may see and who may steer: viewers, their roles, and the rule for this machine's users."""

import ipaddress
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from inspect import isawaitable
from typing import TypeAlias

from starlette.requests import HTTPConnection
from starlette.responses import Response

_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


class Role(Enum):
    """A reader sees everything, an operator also steers."""

    READER = "read-only"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Viewer:
    """Someone who may look. `name` is what the audit table shows for what they do."""

    name: str
    role: Role = Role.READER

    @property
    def may_steer(self) -> bool:
        return self.role is Role.OPERATOR


NOBODY = Viewer("nobody")
# A viewer; `None` refuses; a response is sent as it is, such as a redirect to a login page.
Answer: TypeAlias = Viewer | Response | None
Authenticate: TypeAlias = Callable[[HTTPConnection], Answer | Awaitable[Answer]]


async def who_is(connection: HTTPConnection, authenticate: Authenticate) -> Answer:
    answer = authenticate(connection)
    return await answer if isawaitable(answer) else answer


def local_viewers(connection: HTTPConnection) -> Viewer | None:
    """Let users of this machine do everything, and nobody else anything.

    A request that a proxy has handed on comes from somewhere else, so it is refused.
    """
    is_forwarded = any(name in connection.headers for name in _FORWARDED)
    address = connection.client.host if connection.client else ""
    if is_forwarded or not is_loopback(address):
        return None
    return Viewer("local user", Role.OPERATOR)


@dataclass(frozen=True, slots=True)
class OnlyReading:
    """Lets the same people in, but nobody steer."""

    authenticate: Authenticate

    async def __call__(self, connection: HTTPConnection) -> Answer:
        answer = await who_is(connection, self.authenticate)
        return Viewer(answer.name, Role.READER) if isinstance(answer, Viewer) else answer


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
