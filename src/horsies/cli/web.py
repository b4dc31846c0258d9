"""`horsies web`: the dashboard in a browser."""

import contextlib
import logging
import socket
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from horsies.app import Horsies
from horsies.cli.operating import MODULE, find_app
from horsies.cli.printing import echo

if TYPE_CHECKING:
    from horsies.web import Authenticate, WebOptions

_NO_EXTRA = "the dashboard needs more packages; install them with: pip install 'horsies[web]'"
_NO_ACCESS = """other machines reach {host}, so say who may see the dashboard:
  --token TOKEN        those who know it; better as HORSIES_WEB_TOKEN, which nobody else sees
  --user NAME:HASH     those with this name and password; --hash-password makes the hash
  --trusted-header X-Forwarded-User --trusted-proxy ADDRESS
                       those whom a proxy has let in
Without --host the dashboard serves this machine alone and asks nobody."""


class AccessOptions(TypedDict):
    """The options that say who may see and steer, by the names that click gives them."""

    token: str | None
    read_token: str | None
    users: tuple[str, ...]
    readers: tuple[str, ...]
    trusted_header: str | None
    proxies: tuple[str, ...]
    is_read_only: bool


class WebCommandOptions(AccessOptions):
    tick_rate: float
    hosts: tuple[str, ...]
    hidden: tuple[str, ...]
    hide_results: bool
    root_path: str


@click.command("web")
@click.argument("place", required=False, metavar="[MODULE]")
@MODULE
@click.option("-d", "--database-url", help="The database, where no app is named.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8600, show_default=True)
@click.option(
    "-t",
    "--tick-rate",
    type=click.FloatRange(0.1, 20),
    default=4.0,
    show_default=True,
    help="How often a second pages are brought up to date, at most.",
)
@click.option("--token", envvar="HORSIES_WEB_TOKEN", help="Those who know it may steer.")
@click.option(
    "--read-token", envvar="HORSIES_WEB_READ_TOKEN", help="Those who know it may only look."
)
@click.option("--user", "users", multiple=True, metavar="NAME:HASH", help="Someone who may steer.")
@click.option(
    "--reader", "readers", multiple=True, metavar="NAME:HASH", help="Someone who may only look."
)
@click.option("--trusted-header", help="The header in which a proxy names the user.")
@click.option(
    "--trusted-proxy", "proxies", multiple=True, help="Address or network of such a proxy."
)
@click.option("--read-only", "is_read_only", is_flag=True, help="Everyone looks, nobody steers.")
@click.option(
    "--allowed-host", "hosts", multiple=True, help="A name under which browsers may ask for it."
)
@click.option(
    "--hide-argument", "hidden", multiple=True, help="Arguments to mask too, such as '*card*'."
)
@click.option("--hide-results", is_flag=True, help="Mask what tasks return.")
@click.option("--root-path", default="", help="The path under which a proxy serves it.")
@click.option(
    "--hash-password", "only_hashes", is_flag=True, help="Ask for a password and print its hash."
)
def command(
    place: str | None,
    module: str | None,
    database_url: str | None,
    host: str,
    port: int,
    *,
    only_hashes: bool,
    **given: Unpack[WebCommandOptions],
) -> None:
    """Serve the dashboard until Ctrl-C.

    Without MODULE it shows the database of -d, HORSIES_DATABASE_URL, DATABASE_URL or .env. It
    then knows no task's signature, so tasks cannot be sent again with other arguments.

    \b
    Example:  horsies web shop:app
              HORSIES_WEB_TOKEN=… horsies web shop:app --host 0.0.0.0
    """
    try:
        from horsies.web import hash_password
    except ImportError as error:
        raise click.ClickException(f"{_NO_EXTRA} ({error})") from error
    if only_hashes:
        echo(hash_password(click.prompt("Password", hide_input=True, confirmation_prompt=True)))
        return
    try:
        options = _options(host, given)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    serve(find_app(module or place, database_url), host, port, options, given["root_path"])


def serve(app: Horsies, host: str, port: int, options: "WebOptions", root_path: str = "") -> None:
    """Serve until a signal comes; the first line says where."""
    import uvicorn

    from horsies.web import create_app

    with contextlib.closing(_listen(host, port)) as listening:
        shown = f"[{host}]" if ":" in host else host
        echo(f"horsies web: http://{shown}:{listening.getsockname()[1]}{root_path}/")
        config = uvicorn.Config(
            create_app(app, options),
            log_level=logging.WARNING,
            root_path=root_path,
            proxy_headers=False,  # who asks is known by the address, which a header could forge
            server_header=False,
            timeout_graceful_shutdown=1,  # open pages wait for news without end
        )
        uvicorn.Server(config).run(sockets=[listening])
    app.close()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise click.ClickException(
            f"{host}:{port} cannot be used: {error.strerror or error}; choose another --port"
        ) from error


def _options(host: str, given: WebCommandOptions) -> "WebOptions":
    from horsies.web import WebOptions

    usual = WebOptions()
    return WebOptions(
        authenticate=_authenticate(host, given),
        allowed_hosts=(socket.gethostname().lower(), *(name.lower() for name in given["hosts"])),
        tick_rate=given["tick_rate"],
        hide_arguments=(*usual.hide_arguments, *given["hidden"]),
        hide_results=given["hide_results"],
    )


def _authenticate(host: str, given: AccessOptions) -> "Authenticate":
    """The one way in that the options name."""
    from horsies.web import Role, basic_viewers, local_viewers, proxy_viewers, token_viewers
    from horsies.web.access import OnlyReading, is_loopback

    ways: list[Authenticate] = []
    if given["token"] or given["read_token"]:
        ways.append(token_viewers(given["token"], given["read_token"]))
    if given["users"] or given["readers"]:
        ways.append(basic_viewers(_named(given["users"]), _named(given["readers"])))
    if given["trusted_header"]:
        ways.append(proxy_viewers(given["trusted_header"], given["proxies"], role=Role.OPERATOR))
    if len(ways) > 1:
        raise click.UsageError("choose one of tokens, users and a trusted proxy")
    if not ways and not is_loopback(host):
        raise click.UsageError(_NO_ACCESS.format(host=host))
    way = ways[0] if ways else local_viewers
    return OnlyReading(way) if given["is_read_only"] else way


def _named(texts: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition(":") for text in texts]
    for name, colon, _ in pairs:
        if not (name and colon):
            raise click.UsageError("give a name and a hash, such as ann:scrypt$…")
    return {name: text for name, _, text in pairs}
