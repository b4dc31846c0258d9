"""The HTTP pages of a worker process: health from its first moment on, metrics once it works."""

from collections.abc import Iterable

from horsies.observability.http_server import Page, Pages, PageServer, json_page
from horsies.observability.metrics import Exposition, Family
from horsies.worker.settings import WorkerConfig
from horsies.worker.vitals import Vitals


class WorkerPages:
    """Servers on the ports that were asked for; `vitals` are there once the worker is made."""

    def __init__(self, settings: WorkerConfig) -> None:
        self.vitals: Vitals | None = None
        self._exposition: Exposition | None = None
        health: Pages = {"/health/live": self._live, "/health/ready": self._ready}
        by_port: dict[int, Pages] = {}
        if settings.health_port is not None:
            by_port[settings.health_port] = health
        if settings.metrics_port is not None:
            self._exposition = Exposition(self._families, has_process=True)
            by_port[settings.metrics_port] = {**health, "/metrics": self._metrics}
        self._servers = [
            PageServer(settings.http_host, port, pages) for port, pages in by_port.items()
        ]

    def start(self) -> None:
        for server in self._servers:
            server.start()

    def close(self) -> None:
        for server in self._servers:
            server.close()

    def _live(self, _accept: str) -> Page:
        return _health([] if self.vitals is None else self.vitals.deadly_problems(), "live")

    def _ready(self, _accept: str) -> Page:
        starting = ["it is starting"]
        return _health(starting if self.vitals is None else self.vitals.problems(), "ready")

    def _metrics(self, accept: str) -> Page:
        assert self._exposition is not None
        return Page(200, *self._exposition.text(accept))

    def _families(self) -> Iterable[Family]:
        return [] if self.vitals is None else self.vitals.families()


def _health(problems: list[str], name: str) -> Page:
    return json_page(503 if problems else 200, {name: not problems, "problems": problems})
