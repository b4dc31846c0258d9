"""`horsies web`: the dashboard in a browser."""

import contextlib
import os
import secrets
import socket
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict, Unpack

import click

from horsies.app import Horsies
from horsies.cli.operating import MODULE, find_app

if TYPE_CHECKING:
    from horsies.web import Authenticate, WebOptions

_NO_EXTRA = "the dashboard needs more packages; install them with: pip install 'horsies[web]'"
_NO_ACCESS = """other machines reach {host}, so say who may see the dashboard:
  --token TOKEN        those who know it; better as HORSIES_WEB_TOKEN, which nobody else sees
  --user NAME:HASH     those with this name and password; --hash-password makes the hash
  --trusted-header X-Forwarded-User --trusted-proxy ADDRESS
                       those whom a proxy has let in
Without --host the dashboard serves this machine alone: its users look, and the link that it
prints lets them steer."""
_ONLY_LOOKS = "Without the token everyone on this machine may look, and nobody may steer."


class Access(NamedTuple):
    """Who gets in; `token` was made for this run, and the printed link has it."""

    authenticate: "Authenticate"
    token: str | None = None


class Place(NamedTuple):
    """Where the dashboard listens: at an address and port, or at a Unix socket."""

    host: str
    port: int
    unix: Path | None = None
    root_path: str = ""


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
    host: str
    port: int
    unix: Path | None
    root_path: str
    tick_rate: float
    hosts: tuple[str, ...]
    hidden: tuple[str, ...]
    hide_results: bool


@click.command("web")
@click.argument("place", required=False, metavar="[MODULE]")
@MODULE
@click.option("-d", "--database-url", help="The database, where no app is named.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8600, show_default=True)
@click.option(
    "--unix",
    type=click.Path(path_type=Path),
    help="Listen on this Unix socket instead; its owner may steer.",
)
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
              horsies web shop:app --unix /run/shop/web.sock
    """
    try:
        from horsies.web import hash_password
    except ImportError as error:
        raise click.ClickException(f"{_NO_EXTRA} ({error})") from error
    if only_hashes:
        click.echo(
            hash_password(click.prompt("Password", hide_input=True, confirmation_prompt=True))
        )
        return
    at = Place(given["host"], given["port"], given["unix"], given["root_path"])
    try:
        access = _access(at, given)
        options = _options(access, given)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    serve(find_app(module or place, database_url), at, options, access.token)


def serve(app: Horsies, at: Place, options: "WebOptions", token: str | None = None) -> None:
    """Serve until a signal comes; the first line says where, as a link that lets one steer."""
    from horsies.web.server import make_server

    with _listen(at) as listening:
        link = f"login?token={token}" if token else ""
        click.echo(f"horsies web: {_address(at, listening)}{link}")
        if token:
            click.echo(_ONLY_LOOKS)
        make_server(app, options, at.root_path).run(sockets=[listening])
    app.close()


def _address(at: Place, listening: socket.socket) -> str:
    if at.unix is not None:
        return str(at.unix)
    shown = f"[{at.host}]" if ":" in at.host else at.host
    return f"http://{shown}:{listening.getsockname()[1]}{at.root_path}/"


@contextlib.contextmanager
def _listen(at: Place) -> Generator[socket.socket]:
    try:
        made = _socket_file(at.unix) if at.unix else _port(at)
    except OSError as error:
        named, cure = (at.unix, "--unix") if at.unix else (f"{at.host}:{at.port}", "--port")
        raise click.ClickException(
            f"{named} cannot be used: {error.strerror or error}; choose another {cure}"
        ) from error
    try:
        yield made
    finally:
        made.close()
        if at.unix is not None:
            at.unix.unlink(missing_ok=True)


def _port(at: Place) -> socket.socket:
    family = socket.AF_INET6 if ":" in at.host else socket.AF_INET
    return socket.create_server((at.host, at.port), family=family)


def _socket_file(path: Path) -> socket.socket:
    """A socket that only its owner may open, in place of one that nobody serves any more."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if path.is_socket():
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
            if probe.connect_ex(str(path)) != 0:
                path.unlink()
    mask = os.umask(0o177)
    try:
        made.bind(str(path))
    finally:
        os.umask(mask)
    made.listen()
    return made


def _options(access: Access, given: WebCommandOptions) -> "WebOptions":
    from horsies.web import WebOptions

    usual = WebOptions()
    return WebOptions(
        authenticate=access.authenticate,
        allowed_hosts=(socket.gethostname().lower(), *(name.lower() for name in given["hosts"])),
        trusted_proxies=given["proxies"],
        tick_rate=given["tick_rate"],
        hide_arguments=(*usual.hide_arguments, *given["hidden"]),
        hide_results=given["hide_results"],
    )


def _access(at: Place, given: AccessOptions) -> Access:
    """The one way in that the options name."""
    from horsies.web import Role, basic_viewers, proxy_viewers, token_viewers
    from horsies.web.access import OnlyReading, is_loopback, local_viewers, socket_viewers

    ways: list[Authenticate] = []
    if given["token"] or given["read_token"]:
        ways.append(token_viewers(given["token"], given["read_token"]))
    if given["users"] or given["readers"]:
        ways.append(basic_viewers(_named(given["users"]), _named(given["readers"])))
    if given["trusted_header"]:
        ways.append(proxy_viewers(given["trusted_header"], given["proxies"], role=Role.OPERATOR))
    if len(ways) > 1:
        raise click.UsageError("choose one of tokens, users and a trusted proxy")
    if not ways and at.unix:
        ways.append(socket_viewers)
    if not ways and not is_loopback(at.host):
        raise click.UsageError(_NO_ACCESS.format(host=at.host))
    if given["is_read_only"]:
        return Access(OnlyReading(ways[0] if ways else local_viewers))
    return Access(ways[0]) if ways else local_access()


def local_access() -> Access:
    """Users of this machine look; those who open the printed link steer."""
    from horsies.web.credentials import local_token_viewers

    token = secrets.token_urlsafe(24)
    return Access(local_token_viewers(token), token)


def _named(texts: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition(":") for text in texts]
    for name, colon, _ in pairs:
        if not (name and colon):
            raise click.UsageError("give a name and a hash, such as ann:scrypt$…")
    return {name: text for name, _, text in pairs}
