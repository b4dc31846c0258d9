"""`horsies metrics`: the whole system in numbers, for Prometheus."""

from collections.abc import Iterable

import click

from horsies.app import Horsies
from horsies.cli.operating import takes_app
from horsies.cli.printing import echo
from horsies.observability.http_server import Page, PageServer
from horsies.observability.metrics import Exposition, Family
from horsies.operations.metrics import WINDOW, down_families, system_families
from horsies.result import Err


@click.command("metrics")
@takes_app
@click.option(
    "--port",
    type=click.IntRange(min=0, max=65_535),
    default=None,
    help="Serve /metrics until stopped, instead of printing them once.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to serve on.")
def command(app: Horsies, port: int | None, host: str) -> None:
    """Print gauges of queues, workers and workflows in the format of Prometheus.

    With --port, serve them: each scrape asks the database. Exits with 1 if the database does not
    answer; a server says horsies_up 0 instead. What single tasks wait and take is told by workers,
    see `horsies worker --metrics-port`.
    """
    exposition = Exposition(lambda: _families(app))
    if port is None:
        _content_type, text = exposition.text()
        echo(text.decode(), nl=False)
        is_up = b"horsies_up 1.0" in text
        raise SystemExit(0 if is_up else 1)
    server = PageServer(host, port, {"/metrics": lambda a: Page(200, *exposition.text(a))})
    echo(f"serving {server.address}/metrics", err=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.close()


def _families(app: Horsies) -> Iterable[Family]:
    status = app.operations.status(window=WINDOW)
    if isinstance(status, Err):
        echo(f"the database does not answer: {status.err_value.message}", err=True)
        return down_families()
    return system_families(status.ok_value)
