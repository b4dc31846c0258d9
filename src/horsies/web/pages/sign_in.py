"""The page that asks for a token, where viewers are known by one."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from horsies.web.credentials import SESSION_COOKIE, SESSION_S, TokenViewers, tokens_of
from horsies.web.rendering import error_page, render
from horsies.web.routes import read_form, visit_of
from horsies.web.visit import RefusedError, Visit


def _tokens(visit: Visit) -> TokenViewers:
    known = tokens_of(visit.site.options.authenticate)
    if known is None:
        raise RefusedError("There is no such page.", 404)
    return known


async def sign_in(request: Request) -> Response:
    """Take the token from a link or ask for it, and keep a session for who knows it."""
    visit = visit_of(request)
    try:
        tokens = _tokens(visit)
        given = await _given(visit)
    except RefusedError as error:
        return error_page(visit, error)
    if given is None:
        return render(visit, "sign_in.html", is_wrong=False)
    if tokens.owner_of(given) is None:
        return render(visit, "sign_in.html", code=403, is_wrong=True)
    # The page that follows has an address without the token.
    response = RedirectResponse(visit.url("/"), 303)
    visit.set_cookie(response, SESSION_COOKIE, tokens.session_for(given), max_age_s=SESSION_S)
    return response


async def _given(visit: Visit) -> str | None:
    if visit.request.method == "POST":
        return (await read_form(visit.request)).get("token", "").strip()
    return visit.query("token") or None


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
