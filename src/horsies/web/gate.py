"""What stands before every page: whom the request was meant for, who asks, and safe headers."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from horsies.web.access import (
    NOBODY,
    Viewer,
    is_address,
    is_from,
    is_loopback,
    networks_of,
    who_is,
)
from horsies.web.options import WebOptions

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_OPEN_TO_ALL = ("/static/", "/login")


class Gate:
    """Refuses unknown host names and unknown people; gives the others their viewer."""

    def __init__(self, inner: ASGIApp, options: WebOptions) -> None:
        self._inner = inner
        self._options = options
        self._proxies = networks_of(options.trusted_proxies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        safely = _with_headers(send)
        if self._came_through_tls(HTTPConnection(scope)):
            scope["scheme"] = "https"
        refusal = self._wrong_host(Headers(scope=scope)) or await self._stranger(scope)
        if refusal is not None:
            await refusal(scope, receive, safely)
            return
        await self._inner(scope, receive, safely)

    def _came_through_tls(self, connection: HTTPConnection) -> bool:
        """Whether a proxy that we trust says so; anyone else could claim it."""
        said = set(connection.headers.getlist("x-forwarded-proto"))
        return said == {"https"} and is_from(connection, self._proxies)

    def _wrong_host(self, headers: Headers) -> Response | None:
        """A page of an attacker whose name points here must not reach us: names must be known."""
        host = _without_port(headers.get("host", ""))
        allowed = self._options.allowed_hosts
        if "*" in allowed or host in allowed or is_address(host) or is_loopback(host):
            return None
        return PlainTextResponse(
            f"This dashboard does not answer to the name {host[:200]!r}. "
            "Allow it with --allowed-host.\n",
            421,
        )

    async def _stranger(self, scope: Scope) -> Response | None:
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if path.startswith(_OPEN_TO_ALL):
            scope["horsies.viewer"] = NOBODY
            return None
        answer = await who_is(HTTPConnection(scope), self._options.authenticate)
        if isinstance(answer, Viewer):
            scope["horsies.viewer"] = answer
            return None
        return answer or PlainTextResponse("You may not see this dashboard.\n", 403)


def _with_headers(send: Send) -> Send:
    async def send_safely(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return send_safely


def _without_port(host: str) -> str:
    host = host.lower()
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
