"""`horsies pg`: use the embedded PostgreSQL by hand and from other tools."""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from horsies import embedded_postgres
from horsies.cli.asking import confirm, takes_yes
from horsies.cli.printing import echo
from horsies.passwords import mask_url

Command = TypeVar("Command", bound=Callable[..., object])


def _directory_option(command: Command) -> Command:
    return click.option(
        "--directory",
        type=click.Path(path_type=Path, file_okay=False),
        help="The project directory.  [default: HORSIES_HOME, else the project around here]",
    )(command)


@click.group(name="pg")
def command() -> None:
    """Use the embedded PostgreSQL of this project.

    It is a real server for development and keeps its data in the `.horsies` directory of the
    project. It starts on demand and stops after five idle minutes. These commands ignore database
    URLs in the environment.
    """


@command.command()
@click.option(
    "--tcp", is_flag=True, help="Print the URL of a server started with --port, with its password."
)
@_directory_option
def url(directory: Path | None, tcp: bool) -> None:
    """Print the URL of the server; start the server if necessary.

    \b
    Example:  psql "$(horsies pg url)"
    """
    if not tcp:
        return echo(embedded_postgres.acquire(directory, quiet=True).url)
    if found := embedded_postgres.status(directory).tcp_url:
        return echo(found)
    raise click.ClickException(
        "no server with a TCP port is running; run: horsies pg stop && horsies pg start --port N"
    )


@command.command()
@_directory_option
def status(directory: Path | None) -> None:
    """Print whether the server is running; exit with 1 if it is not."""
    found = embedded_postgres.status(directory)
    lines = {
        "state": "running" if found.is_running else "stopped",
        "directory": found.directory,
        "version": found.version,
        "process": found.postmaster_pid,
        "url": found.url,
        "tcp url": found.tcp_url and mask_url(found.tcp_url),
    }
    for name, value in lines.items():
        if value is not None:
            echo(f"{name:<10} {value}")
    click.get_current_context().exit(0 if found.is_running else 1)


@command.command()
@click.option(
    "--idle-timeout",
    type=click.FloatRange(min=0),
    default=math.inf,
    help="Stop after this many idle seconds.  [default: never]",
)
@click.option(
    "--port",
    type=click.IntRange(1024, 65535),
    help="Also listen on this port of 127.0.0.1, with a password.  [default: no TCP]",
)
@_directory_option
def start(idle_timeout: float, port: int | None, directory: Path | None) -> None:
    """Start the server and leave it running until `horsies pg stop`.

    A running server keeps the idle timeout and the port with which it was started. `horsies pg url
    --tcp` prints the password of the port.
    """
    was_running = embedded_postgres.status(directory).is_running
    server = embedded_postgres.acquire(directory, idle_timeout=idle_timeout, port=port)
    if was_running:
        echo(
            "it ran already and keeps its idle timeout, five minutes if it started by itself; "
            "to start it anew, run horsies pg stop first",
            err=True,
        )
    if port is None or server.tcp_url is None:
        return echo(server.url)
    echo(mask_url(server.tcp_url))
    return echo("to print it with the password, run: horsies pg url --tcp", err=True)


@command.command()
@_directory_option
def stop(directory: Path | None) -> None:
    """Stop the server now. Its clients lose their connections, but no data is lost."""
    echo("stopped" if embedded_postgres.stop(directory) else "was not running")


@command.command(context_settings={"ignore_unknown_options": True})
@_directory_option
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def psql(arguments: tuple[str, ...], directory: Path | None) -> None:
    """Open `psql` on the server and pass ARGUMENTS to it.

    \b
    Example:  horsies pg psql -c 'select version()'
    """
    server = embedded_postgres.acquire(directory, quiet=True)
    program = embedded_postgres.psql_program(directory)
    # psql replaces this process, so that it handles Ctrl-C and sets the exit code.
    os.execv(program, [str(program), server.url, *arguments])  # noqa: S606


@command.command()
@takes_yes
@_directory_option
def reset(directory: Path | None, yes: bool) -> None:
    """Delete all data of the server: tasks, results and everything else in it."""
    place = embedded_postgres.status(directory).directory
    confirm(f"Delete all data in {place}?", yes=yes)
    echo("deleted" if embedded_postgres.reset(directory) else "there was no data")
