"""From values to HTML: the templates, what they may call, and the whole or the changing part."""

import hashlib
import re
import secrets
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from horsies.drawing.path_parts import quoted
from horsies.operations.words import duration
from horsies.version import __version__
from horsies.web.access import NOBODY
from horsies.web.charts import bar
from horsies.web.credentials import SESSION_COOKIE, tokens_of
from horsies.web.navigation import NAVIGATION
from horsies.web.places import place
from horsies.web.visit import MESSAGE_COOKIE, RefusedError, Visit

HERE = Path(__file__).parent
CSRF_COOKIE = "horsies_csrf"
THEME_COOKIE = "horsies_theme"
_THEMES = ("light", "dark")
_CSRF_SHAPE = re.compile(r"[\w-]{43}", re.ASCII)


def make_templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(_FILTERS)
    return environment


def assets_version() -> str:
    """Changes with every asset, so that browsers may keep them for ever."""
    digest = hashlib.sha256(__version__.encode())
    for path in sorted((HERE / "static").rglob("*")):
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def render(visit: Visit, template: str, *, code: int = 200, **values: Any) -> Response:
    """A page, or only its changing part where the page itself asks for it."""
    request = visit.request
    is_part = "x-part" in request.headers
    known_csrf = csrf_of(request)
    csrf = known_csrf or secrets.token_urlsafe(32)
    theme = request.cookies.get(THEME_COOKIE, "")
    said = None if is_part else request.cookies.get(MESSAGE_COOKIE)
    html = visit.site.templates.get_template(template).render(
        layout="part.html" if is_part else "base.html",
        visit=visit,
        url=visit.url,
        place=place,
        csrf=csrf,
        theme=theme if theme in _THEMES else "auto",
        said=_read_message(said),
        navigation=NAVIGATION,
        is_known=visit.viewer is not NOBODY,
        is_signed_in=SESSION_COOKIE in request.cookies,
        can_sign_in=tokens_of(visit.site.options.authenticate) is not None,
        here=request.scope["path"].removeprefix(request.scope.get("root_path", "")),
        **values,
    )
    if is_part and _is_known(visit, html):
        return Response(status_code=204)
    response = HTMLResponse(html, code)
    response.headers["x-mark"] = _mark(html)
    if known_csrf is None:
        visit.set_cookie(response, CSRF_COOKIE, csrf)
    if said is not None:
        response.delete_cookie(MESSAGE_COOKIE, path=visit.url("/"))
    return response


def csrf_of(request: Request) -> str | None:
    """The token that forms of this browser carry; a cookie that we did not make is none."""
    found = request.cookies.get(CSRF_COOKIE, "")
    return found if _CSRF_SHAPE.fullmatch(found) else None


def _read_message(text: str | None) -> str | None:
    """What the page before left to say; a cookie can hold anything."""
    try:
        said: object = from_json(text or "null")
    except ValueError:
        return None
    return said if isinstance(said, str) else None


def _mark(html: str) -> str:
    return hashlib.sha256(html.encode()).hexdigest()[:16]


def _is_known(visit: Visit, html: str) -> bool:
    """Whether the page shows exactly this already."""
    return visit.request.headers["x-part"] == _mark(html)


def error_page(visit: Visit, error: RefusedError) -> Response:
    return render(visit, "error.html", code=error.status, error=error)


def in_seconds(number: float) -> str:
    return duration(timedelta(seconds=number))


def moment(at: datetime | None) -> Markup:
    """An instant, which the browser shows in the reader's zone."""
    return _time(at, "moment")


def ago(at: datetime | None) -> Markup:
    """How long ago an instant was, which the browser keeps up to date."""
    return _time(at, "ago")


def _time(at: datetime | None, shape: str) -> Markup:
    if at is None:
        return Markup("")
    return Markup('<time datetime="{}" data-shape="{}">{:%Y-%m-%d %H:%M:%S} UTC</time>').format(
        at.isoformat(), shape, at
    )


_FILTERS: dict[str, Any] = {
    "duration": duration,
    "seconds": in_seconds,
    "ago": ago,
    "moment": moment,
    "number": "{:,}".format,
    "bar": bar,
    "quoted": quoted,
}
