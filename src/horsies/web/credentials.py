"""The ways to prove who one is that the dashboard brings along: token, password, trusted proxy.

All comparisons take the same time whether they match or not.
"""

import asyncio
import base64
import hashlib
import hmac
import os
from collections import Counter
from collections.abc import Mapping, Sequence

from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response

from horsies.clock import utc_now
from horsies.web.access import (
    LOCAL_USER,
    Answer,
    Authenticate,
    OnlyReading,
    Role,
    Viewer,
    is_from,
    local_viewers,
    networks_of,
    peer_of,
    who_is,
)

SESSION_COOKIE = "horsies_session"
SESSION_S = 12 * 3600
_SCRYPT = {"n": 2**14, "r": 8, "p": 1}
_CHECKS_AT_ONCE = 2
_CHECKS_PER_LANE = 2
_LANES = 16


class TokenViewers:
    """Viewers who know a token, which they send as `Authorization: Bearer`, open in a link or type.

    `otherwise` decides about those who know none; without it they are asked to sign in.
    """

    def __init__(self, tokens: Mapping[str, Viewer], otherwise: Authenticate | None = None) -> None:
        if not all(len(token) >= 16 for token in tokens):
            raise ValueError(
                "a token has at least 16 characters; make one with: openssl rand -hex 24"
            )
        self._tokens = dict(tokens)
        self._otherwise = otherwise

    async def __call__(self, connection: HTTPConnection) -> Answer:
        scheme, _, given = connection.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and (viewer := self.owner_of(given)):
            return viewer
        if viewer := self._signed_in(connection.cookies.get(SESSION_COOKIE, "")):
            return viewer
        if self._otherwise is not None:
            return await who_is(connection, self._otherwise)
        return RedirectResponse(f"{connection.scope.get('root_path', '')}/login", 303)

    def owner_of(self, given: str) -> Viewer | None:
        """Compare with all, so that the time tells nothing."""
        found = [
            viewer
            for token, viewer in self._tokens.items()
            if hmac.compare_digest(token.encode(), given.encode())
        ]
        return found[0] if found else None

    def session_for(self, token: str) -> str:
        """A cookie that shows for some hours that its owner knew the token."""
        until = str(int(utc_now().timestamp()) + SESSION_S)
        return f"{until}.{_sign(token, until)}"

    def _signed_in(self, cookie: str) -> Viewer | None:
        until, _, signature = cookie.partition(".")
        is_number = until.isascii() and until.isdecimal() and len(until) <= 12
        if not is_number or int(until) < utc_now().timestamp():
            return None
        found = [
            viewer
            for token, viewer in self._tokens.items()
            if hmac.compare_digest(_sign(token, until).encode(), signature.encode())
        ]
        return found[0] if found else None


def tokens_of(authenticate: Authenticate) -> TokenViewers | None:
    """The tokens that the sign-in page takes, if it takes any."""
    if isinstance(authenticate, OnlyReading):
        authenticate = authenticate.authenticate
    return authenticate if isinstance(authenticate, TokenViewers) else None


def token_viewers(operator: str | None = None, reader: str | None = None) -> TokenViewers:
    """Who knows the operator's token steers; who knows the reader's looks."""
    tokens = {
        token: Viewer(f"token {role.value}", role, "To steer, sign in with the operator's token.")
        for token, role in ((reader, Role.READER), (operator, Role.OPERATOR))
        if token
    }
    return TokenViewers(tokens)


def local_token_viewers(token: str) -> TokenViewers:
    """Users of this machine look; who knows the token that `horsies web` prints also steers."""
    how = (
        "To steer, open the link that horsies web printed at its start, or sign in with its token."
    )

    def readers(connection: HTTPConnection) -> Viewer | None:
        viewer = local_viewers(connection)
        return viewer and Viewer(viewer.name, how_to_steer=how)

    return TokenViewers({token: Viewer(LOCAL_USER, Role.OPERATOR)}, readers)


def _sign(token: str, until: str) -> str:
    return hmac.new(token.encode(), f"horsies session {until}".encode(), hashlib.sha256).hexdigest()


def basic_viewers(
    operators: Mapping[str, str], readers: Mapping[str, str] | None = None
) -> Authenticate:
    """Names and hashes of passwords, as `hash_password` makes them; the browser asks for both."""
    users = {
        **{name: (text, Role.READER) for name, text in (readers or {}).items()},
        **{name: (text, Role.OPERATOR) for name, text in operators.items()},
    }
    for name, (text, _) in users.items():
        _parts(text, name)
    # Checking a password is slow on purpose: who has shown it once is remembered by a keyed digest.
    key, known = os.urandom(32), dict[bytes, Viewer]()
    nobody, checks = hash_password(os.urandom(8).hex()), _PasswordChecks()
    how = "To steer, sign in as a user who may."

    async def authenticate(connection: HTTPConnection) -> Answer:
        given = _given(connection.headers.get("authorization", ""))
        if given is None:
            return _challenge()
        name, password = given
        digest = hmac.digest(key, f"{name}\0{password}".encode(), "sha256")
        if digest in known:
            return known[digest]
        # Lanes are drawn by lot, not by name: what is refused says nothing about who exists.
        lane = (peer_of(connection), hmac.digest(key, name.encode(), "sha256")[0] % _LANES)
        text, role = users.get(name, (nobody, Role.READER))
        is_right = await checks.is_right(lane, password, text)
        if is_right is None:
            return Response("Too many sign-ins at once.", 429, {"retry-after": "1"})
        if is_right and name in users:
            known[digest] = Viewer(name, role, how)
            return known[digest]
        return _challenge()

    return authenticate


def _challenge() -> Response:
    return Response("Sign in.", 401, {"www-authenticate": 'Basic realm="horsies", charset="UTF-8"'})


class _PasswordChecks:
    """Checks passwords beside the event loop: few at once, and few that wait in one lane."""

    def __init__(self) -> None:
        self._threads = asyncio.Semaphore(_CHECKS_AT_ONCE)
        self._waiting = Counter[tuple[str, int]]()

    async def is_right(self, lane: tuple[str, int], password: str, stored: str) -> bool | None:
        """Whether it is the password; None where the lane is full."""
        if self._waiting[lane] >= _CHECKS_PER_LANE:
            return None
        self._waiting[lane] += 1
        try:
            async with self._threads:
                return await asyncio.to_thread(is_password, password, stored)
        finally:
            self._waiting[lane] -= 1
            if not self._waiting[lane]:
                del self._waiting[lane]


def _given(header: str) -> tuple[str, str] | None:
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:
        return None
    return name, password


def hash_password(password: str) -> str:
    """What may be stored in place of a password."""
    salt = os.urandom(16)
    made = hashlib.scrypt(password.encode(), salt=salt, **_SCRYPT)
    return f"scrypt${salt.hex()}${made.hex()}"


def is_password(password: str, stored: str) -> bool:
    salt, expected = _parts(stored, "")
    made = hashlib.scrypt(password.encode(), salt=salt, **_SCRYPT)
    return hmac.compare_digest(made, expected)


def _parts(stored: str, name: str) -> tuple[bytes, bytes]:
    try:
        kind, salt, made = stored.split("$")
        if kind == "scrypt":
            return bytes.fromhex(salt), bytes.fromhex(made)
    except ValueError:
        pass
    raise ValueError(
        f"the password of {name} is not hashed; make the hash with: horsies web --hash-password"
    )


def proxy_viewers(
    header: str, proxies: Sequence[str], *, role: Role = Role.OPERATOR
) -> Authenticate:
    """Believe a header with the user's name, if the request comes from one of these addresses."""
    networks = networks_of(proxies)
    if not networks:
        raise ValueError("name the addresses of the proxies whose header is trusted")

    def authenticate(connection: HTTPConnection) -> Answer:
        names = [name.strip() for name in connection.headers.getlist(header)]
        # A second header means that the proxy has passed on one that its client sent.
        if not is_from(connection, networks) or len(names) != 1 or not names[0]:
            return None
        return Viewer(names[0][:200], role)

    return authenticate
