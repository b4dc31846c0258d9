"""The page that asks for a token, where viewers are known by one."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from horsies.web.access import OnlyReading
from horsies.web.credentials import SESSION_COOKIE, SESSION_S, TokenViewers
from horsies.web.rendering import error_page, render
from horsies.web.routes import read_form, visit_of
from horsies.web.visit import RefusedError, Visit


def _tokens(visit: Visit) -> TokenViewers:
    known = visit.site.options.authenticate
    if isinstance(known, OnlyReading):
        known = known.authenticate
    if not isinstance(known, TokenViewers):
        raise RefusedError("There is no such page.", 404)
    return known


async def sign_in(request: Request) -> Response:
    """Ask for the token, and keep a session for who knows it."""
    visit = visit_of(request)
    try:
        tokens = _tokens(visit)
        if request.method != "POST":
            return render(visit, "sign_in.html", is_wrong=False)
        given = (await read_form(request)).get("token", "").strip()
        if tokens.owner_of(given) is None:
            return render(visit, "sign_in.html", code=403, is_wrong=True)
    except RefusedError as error:
        return error_page(visit, error)
    response = RedirectResponse(visit.url("/"), 303)
    response.set_cookie(
        SESSION_COOKIE,
        tokens.session_for(given),
        max_age=SESSION_S,
        path=visit.url("/"),
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )
    return response


async def sign_out(request: Request) -> Response:
    visit = visit_of(request)
    try:
        await read_form(request)
    except RefusedError as error:
        return error_page(visit, error)
    response = RedirectResponse(visit.url("/login"), 303)
    response.delete_cookie(SESSION_COOKIE, path=visit.url("/"))
    return response


ROUTES = [
    Route("/login", sign_in, methods=["GET", "POST"]),
    Route("/logout", sign_out, methods=["POST"]),
]
