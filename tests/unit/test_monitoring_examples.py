"""The dashboard and the alert rules of examples/monitoring use only metrics that are exported."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from horsies.config import AppConfig, PostgresConfig
from horsies.operations.metrics import system_families
from horsies.operations.queues import IDLE, SystemStatus
from horsies.worker.identity import WorkerIdentity
from horsies.worker.metrics import WorkerMetrics
from horsies.worker.settings import WorkerConfig, WorkerContext

EXAMPLES = Path(__file__).parents[2] / "examples" / "monitoring"
SOURCE = Path(__file__).parents[2] / "src" / "horsies"
NAME = re.compile(r"\b(horsies_\w+)")
GAUGE = re.compile(r'(?:gauge\(|Family\()\s*"(horsies_\w+)",\s*(?:"gauge"|"[A-Z0-9])')


def exported() -> set[str]:
    """All metrics, by the names that queries use for their samples."""
    config = AppConfig(broker=PostgresConfig(database_url="postgresql://nowhere/none"))
    context = WorkerContext(config, WorkerConfig(), WorkerIdentity("w", "host-a", 1))
    families = [
        *WorkerMetrics(context, []).counted(),
        *system_families(SystemStatus([], [], {}, IDLE)),
    ]
    endings = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}
    named = {f"{one.name}{end}" for one in families for end in endings[one.kind]}
    # Gauges of the moment need a whole worker: the end-to-end test reads them from one.
    for module in ("worker/metrics.py", "worker/vitals.py"):
        named |= set(GAUGE.findall((SOURCE / module).read_text()))
    return named


def expressions() -> list[str]:
    dashboard = json.loads((EXAMPLES / "grafana-dashboard.json").read_text())
    rules = yaml.safe_load((EXAMPLES / "alerts.yml").read_text())
    shown = [one["expr"] for panel in dashboard["panels"] for one in panel["targets"]]
    return [*shown, *(rule["expr"] for group in rules["groups"] for rule in group["rules"])]


@pytest.mark.parametrize("expression", expressions())
def test_every_metric_in_use_is_exported(expression: str) -> None:
    names = set(NAME.findall(expression))

    assert names - exported() == set()
    assert names or "process_" in expression
    assert expression.count("(") == expression.count(")")


def test_every_rule_says_what_is_wrong() -> None:
    rules: Any = yaml.safe_load((EXAMPLES / "alerts.yml").read_text())

    for rule in rules["groups"][0]["rules"]:
        assert rule["alert"].startswith("Horsies")
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}


def test_panels_do_not_overlap() -> None:
    dashboard = json.loads((EXAMPLES / "grafana-dashboard.json").read_text())
    taken: set[tuple[int, int]] = set()

    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_what_is_scraped_is_valid() -> None:
    scraped = yaml.safe_load((EXAMPLES / "prometheus.yml").read_text())

    assert [job["job_name"] for job in scraped["scrape_configs"]] == ["horsies-workers", "horsies"]
