"""The ways to prove who one is that the dashboard brings along: token, password, trusted proxy.

All comparisons take the same time whether they match or not.
"""

import base64
import hashlib
import hmac
import ipaddress
import os
from collections.abc import Mapping, Sequence

from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response

from horsies.clock import utc_now
from horsies.web.access import Answer, Authenticate, Role, Viewer

SESSION_COOKIE = "horsies_session"
SESSION_S = 12 * 3600
_SCRYPT = {"n": 2**14, "r": 8, "p": 1}


class TokenViewers:
    """Viewers who know a token: as `Authorization: Bearer`, or typed into the sign-in page."""

    def __init__(self, tokens: Mapping[str, Viewer]) -> None:
        if not all(len(token) >= 16 for token in tokens):
            raise ValueError(
                "a token has at least 16 characters; make one with: openssl rand -hex 24"
            )
        self._tokens = dict(tokens)

    def __call__(self, connection: HTTPConnection) -> Answer:
        scheme, _, given = connection.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and (viewer := self.owner_of(given)):
            return viewer
        if viewer := self._signed_in(connection.cookies.get(SESSION_COOKIE, "")):
            return viewer
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
        if not until.isdigit() or int(until[:12]) < utc_now().timestamp():
            return None
        found = [
            viewer
            for token, viewer in self._tokens.items()
            if hmac.compare_digest(_sign(token, until), signature)
        ]
        return found[0] if found else None


def token_viewers(operator: str | None = None, reader: str | None = None) -> TokenViewers:
    """Who knows the operator's token steers; who knows the reader's looks."""
    tokens = {
        token: Viewer(f"token {role.value}", role)
        for token, role in ((reader, Role.READER), (operator, Role.OPERATOR))
        if token
    }
    return TokenViewers(tokens)


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
    nobody = hash_password(os.urandom(8).hex())

    def authenticate(connection: HTTPConnection) -> Answer:
        name, password = _given(connection.headers.get("authorization", ""))
        digest = hmac.digest(key, f"{name}\0{password}".encode(), "sha256")
        if digest in known:
            return known[digest]
        text, role = users.get(name, (nobody, Role.READER))
        if is_password(password, text) and name in users:
            known[digest] = Viewer(name, role)
            return known[digest]
        return Response(
            "Sign in.", 401, {"www-authenticate": 'Basic realm="horsies", charset="UTF-8"'}
        )

    return authenticate


def _given(header: str) -> tuple[str, str]:
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        name, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:
        return "", ""
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
    networks = [ipaddress.ip_network(proxy) for proxy in proxies]
    if not networks:
        raise ValueError("name the addresses of the proxies whose header is trusted")

    def authenticate(connection: HTTPConnection) -> Answer:
        try:
            peer = ipaddress.ip_address(connection.client.host if connection.client else "")
        except ValueError:
            return None
        name = connection.headers.get(header, "").strip()
        is_trusted = any(peer in network for network in networks)
        return Viewer(name[:200], role) if is_trusted and name else None

    return authenticate
