"""`horsies demo --web`: the dashboard of a busy shop on a throwaway PostgreSQL."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from pathlib import Path
from types import ModuleType

import click

from horsies import HorsiesError, embedded_postgres
from horsies.cli.printing import echo
from horsies.result.variants import UnwrapError

_WORKERS = 2


def run(port: int) -> None:
    """Serve until Ctrl-C; then stop everything and delete the database."""
    try:
        from horsies.cli.web import Place, local_access, serve
        from horsies.web import WebOptions
    except ImportError as error:
        raise click.ClickException(
            f"the dashboard needs more packages: pip install 'horsies[web]' ({error})"
        ) from error
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt), _database() as url:
        # The app reads it when it is imported, and the workers inherit it.
        os.environ["HORSIES_DATABASE_URL"] = url
        from horsies.cli import demo_web_app as shop

        shop.app.get_broker().database.ensure_schema()
        with contextlib.closing(shop.app), _workers(), _business(shop):
            echo("Ctrl-C stops it all and deletes the database.")
            access = local_access()
            options = WebOptions(authenticate=access.authenticate)
            serve(shop.app, Place("127.0.0.1", port), options, access.token)


@contextlib.contextmanager
def _database() -> Generator[str]:
    with tempfile.TemporaryDirectory(prefix="horsies-demo-", ignore_cleanup_errors=True) as made:
        directory = Path(made)
        directory.chmod(0o755)  # under root, the server runs as another user
        echo("Starting a PostgreSQL for the demo …")
        server = embedded_postgres.acquire(directory, idle_timeout=0, quiet=True)
        try:
            yield server.url
        finally:
            server.release()
            embedded_postgres.stop(directory)


@contextlib.contextmanager
def _workers() -> Generator[None]:
    """Workers in sessions of their own, so that Ctrl-C reaches only us and we stop them."""
    words = ("worker", "horsies.cli.demo_web_app:app", "--processes", "2", "--with-scheduler")
    started = [
        subprocess.Popen(
            [sys.executable, "-P", "-m", "horsies.cli.main", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for _ in range(_WORKERS)
    ]
    try:
        yield
    finally:
        for process in started:
            process.terminate()
        for process in started:
            try:
                process.wait(timeout=3)
            except subprocess.TimeoutExpired:  # it waits for a long report to end
                process.terminate()
                process.wait(timeout=15)


@contextlib.contextmanager
def _business(shop: ModuleType) -> Generator[None]:
    """Send tasks from a thread until the block ends."""
    is_closing = threading.Event()

    def trade() -> None:
        second = 0
        with contextlib.suppress(HorsiesError, UnwrapError):  # the database goes away at the end
            shop.begin()
            while not is_closing.wait(1.0):
                shop.keep_busy(second)
                second += 1

    thread = threading.Thread(target=trade, name="horsies-demo-business")
    thread.start()
    try:
        yield
    finally:
        is_closing.set()
        thread.join()
