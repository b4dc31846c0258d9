"""A host application with the dashboard: it must type-check."""

from typing import Annotated

from starlette.applications import Starlette
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount

from horsies import Horsies, Secret, TaskError, TaskResult
from horsies.web import (
    Role,
    Viewer,
    WebOptions,
    basic_viewers,
    create_app,
    hash_password,
    proxy_viewers,
    token_viewers,
)

app = Horsies("postgresql://localhost/shop")


@app.task("charge")
async def charge(order: int, card: Annotated[str, Secret]) -> TaskResult[int, TaskError]:
    return TaskResult(ok=order)


async def signed_in(connection: HTTPConnection) -> Viewer | Response | None:
    name = connection.cookies.get("user")
    return Viewer(name, Role.OPERATOR) if name else RedirectResponse("/login")


charge.send(1, card="4242")
pages = [
    create_app(app),
    create_app(app, authenticate=signed_in, allowed_hosts=("*",), hide_results=True),
    create_app(app, WebOptions(authenticate=token_viewers("a-token-of-sixteen-letters"))),
    create_app(app, authenticate=basic_viewers({"ann": hash_password("secret")})),
    create_app(app, authenticate=proxy_viewers("X-User", ["10.0.0.7"], role=Role.READER)),
]
host = Starlette(routes=[Mount("/horsies", pages[0])])
