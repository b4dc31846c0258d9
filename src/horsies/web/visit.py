"""One request of a viewer: what a page or an action needs to answer it."""

import json
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from horsies.app import Horsies
from horsies.operations.control import Note
from horsies.operations.operations import Operations
from horsies.result import Err
from horsies.result.broker import BrokerResult
from horsies.web.access import Viewer
from horsies.web.changes import Changes
from horsies.web.masking import Masking
from horsies.web.options import WebOptions
from horsies.web.reads import Reads

T = TypeVar("T")
MESSAGE_COOKIE = "horsies_said"


class RefusedError(Exception):
    """What was asked for cannot be had; the text tells the viewer why."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


@dataclass(frozen=True, slots=True)
class Site:
    """One dashboard: what all its requests share."""

    app: Horsies
    options: WebOptions
    reads: Reads
    changes: Changes
    templates: Environment
    masking: Masking
    version: str


@dataclass(frozen=True, slots=True)
class Visit:
    """A request, who made it, and the site it is for."""

    request: Request
    site: Site
    viewer: Viewer

    @property
    def operations(self) -> Operations:
        return self.site.app.operations

    async def read(
        self,
        key: Hashable,
        ask: Callable[[], Awaitable[BrokerResult[T]]],
        *,
        age_s: float = 0,
    ) -> T:
        """The answer to a question, shared with everyone who asks the same."""
        return value_of(await self.site.reads.get(key, ask, age_s=age_s))

    def url(self, path: str, **query: object) -> str:
        """A link to one of our pages, wherever the dashboard is mounted."""
        given = {name: value for name, value in query.items() if value not in (None, "")}
        words = f"?{urlencode(given)}" if given else ""
        return f"{self.request.scope.get('root_path', '')}{path}{words}"

    def query(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default)

    def note(self, form: Mapping[str, str]) -> Note:
        """Who does it and why, for the audit."""
        return Note(by=self.viewer.name, reason=form.get("reason", "").strip()[:500] or None)

    def done(self, path: str, said: str, **query: object) -> Response:
        """Go on to a page that says what was done."""
        self.site.reads.clear()
        response = RedirectResponse(self.url(path, **query), 303)
        self.set_cookie(response, MESSAGE_COOKIE, json.dumps(said[:500]), max_age_s=30)
        return response

    def set_cookie(
        self, response: Response, name: str, value: str, *, max_age_s: int | None = None
    ) -> None:
        """A cookie for our pages alone; one that came through TLS never leaves without it."""
        response.set_cookie(
            name,
            value,
            max_age=max_age_s,
            path=self.url("/"),
            httponly=True,
            samesite="lax",
            secure=self.request.scope["scheme"] == "https",
        )


def whole_number(text: str, low: int, high: int, about: str) -> int:
    """What was typed, or a page that says what is allowed; Python reads no thousands of digits."""
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else None
    if number is None or not low <= number <= high:
        raise RefusedError(f"{about} is a whole number from {low:,} to {high:,}.")
    return number


def value_of(result: BrokerResult[T]) -> T:
    """The value, or a page that says why there is none."""
    if not isinstance(result, Err):
        return result.ok_value
    error = result.err_value
    raise RefusedError(error.message, 503 if error.retryable else 404)


Page = Callable[[Visit], Awaitable[Response]]
Form = Mapping[str, str]
Action = Callable[[Visit, Any], Awaitable[Response]]
