"""`create_app`: the dashboard of an app as an ASGI app, for a server or another app to mount."""

from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from horsies.app import Horsies
from horsies.web.changes import Changes
from horsies.web.gate import Gate
from horsies.web.masking import Masking
from horsies.web.options import WebOptions
from horsies.web.pages import PAGES
from horsies.web.reads import Reads
from horsies.web.rendering import HERE, assets_version, error_page, make_templates
from horsies.web.routes import visit_of
from horsies.web.visit import RefusedError, Site


def create_app(app: Horsies, options: WebOptions | None = None, **settings: Any) -> Starlette:
    """The dashboard of an app, to be served or mounted under any path.

    Settings are the fields of `WebOptions`. Without `authenticate` only users of this machine get
    in. Example: `api.mount("/horsies", create_app(app, authenticate=signed_in))`.
    """
    options = options or WebOptions(**settings)
    tick_s = options.tick.total_seconds()
    reads = Reads(tick_s)
    changes = Changes(app.operations, reads, tick_s)
    version = assets_version()
    masking = Masking(options.hide_arguments, options.hide_results)
    site = Site(app, options, reads, changes, make_templates(), masking, version)
    routes: list[BaseRoute] = [
        Mount(f"/static/{version}", _Assets(directory=HERE / "static")),
        Route("/events", _events),
        *PAGES,
    ]
    made = Starlette(
        routes=routes,
        middleware=[Middleware(Gate, options)],
        exception_handlers={404: _not_found, 405: _not_found},
    )
    made.state.site = site
    return made


class _Assets(StaticFiles):
    """Our files never change under one address: it bears their digest."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["cache-control"] = "public, max-age=31536000, immutable"
        return response


async def _events(request: Request) -> Response:
    changes = visit_of(request).site.changes
    return StreamingResponse(changes.stream(), media_type="text/event-stream")


async def _not_found(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    text = "There is no such page." if status == 404 else "This address takes no such request."
    return error_page(visit_of(request), RefusedError(text, status))
