"""How pages and actions become routes: what every one of them checks before it answers."""

import hmac
from urllib.parse import parse_qs, urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from horsies.web.rendering import csrf_of, error_page
from horsies.web.visit import Action, Page, RefusedError, Visit

_FORM_LIMIT = 2**20
Fields = dict[str, list[str]]


class Form(dict[str, str]):
    """The fields of a form; `all` has those that were given several times."""

    def __init__(self, fields: Fields) -> None:
        super().__init__({name: values[-1] for name, values in fields.items()})
        self._fields = fields

    def all(self, name: str) -> list[str]:
        return self._fields.get(name, [])


def page(path: str, show: Page) -> Route:
    """A page: shown to every viewer, changes nothing."""

    async def endpoint(request: Request) -> Response:
        visit = visit_of(request)
        try:
            return await show(visit)
        except RefusedError as error:
            return error_page(visit, error)

    return Route(path, endpoint, methods=["GET"])


def action(path: str, act: Action, *, is_reading: bool = False) -> Route:
    """An action: for operators only, unless it only reads, and only from our own pages."""

    async def endpoint(request: Request) -> Response:
        visit = visit_of(request)
        try:
            if not (is_reading or visit.viewer.may_steer):
                raise RefusedError("You may look but not steer: your role is read-only.", 403)
            return await act(visit, await read_form(request))
        except RefusedError as error:
            return error_page(visit, error)

    return Route(path, endpoint, methods=["POST"])


def visit_of(request: Request) -> Visit:
    return Visit(request, request.app.state.site, request.scope["horsies.viewer"])


async def read_form(request: Request) -> Form:
    """The fields of a form of ours; anything else is refused."""
    _refuse_foreign(request)
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > _FORM_LIMIT:
                raise RefusedError("This form is larger than 1 MiB.", 413)
    except ClientDisconnect as error:
        raise RefusedError("This form did not arrive as a whole.") from error
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=20_000)
    except ValueError as error:
        raise RefusedError(f"This is not a form: {error}") from error
    form = Form(fields)
    expected = csrf_of(request)
    given = form.pop("csrf", "")
    if expected is None or not hmac.compare_digest(expected.encode(), given.encode()):
        raise RefusedError("This form is from an older page. Go back, reload and try again.", 403)
    return form


def _refuse_foreign(request: Request) -> None:
    """Refuse what a page of another site sends: browsers say where a request comes from."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin")
    is_ours = origin is None or _host_of(origin) == request.headers.get("host")
    if site not in ("same-origin", "none") or not is_ours:
        raise RefusedError("This request comes from another site.", 403)


def _host_of(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None
