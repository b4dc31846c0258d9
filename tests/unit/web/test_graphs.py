"""Graphs and waterfalls of workflows as SVG: what is drawn, and that nothing breaks out of it."""

import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta
from typing import Any

from markupsafe import Markup

from horsies.drawing.rails import NodeGroup
from horsies.web.graphs import BOXES_LIMIT, draw_graph, groups_of
from horsies.web.waterfalls import draw_waterfall
from horsies.workflows.overview import WorkflowOverview
from horsies.workflows.statements import OverviewNode, OverviewWorkflow

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
WORKFLOW = OverviewWorkflow(
    "w", "daily", "RUNNING", "fail", None, None, None, NOW, NOW, None, NOW, None, None, {}
)


def node(index: int, *dependencies: int, **values: Any) -> OverviewNode:
    known: dict[str, Any] = {
        "workflow_id": "w", "task_index": index, "node_id": f"n{index}", "task_name": f"t{index}",
        "kind": "task", "status": "COMPLETED", "started_at": NOW, "completed_at": NOW,
        "dependencies": list(dependencies), "join_type": "all", "min_success": None,
        "queue_name": "default", "sub_workflow_id": None, "wait_until": None, "event_name": None,
        "event_key": None, "retry_count": 0, "error_code": None, "error_message": None,
    }  # fmt: skip
    return OverviewNode(**known | values)


def nowhere(_: NodeGroup) -> str | None:
    return None


def drawn(*nodes: OverviewNode) -> ET.Element:
    graph = draw_graph(WorkflowOverview(WORKFLOW, list(nodes)), nowhere)
    assert graph is not None
    return ET.fromstring(graph)


def test_each_node_is_a_box_and_each_dependency_an_edge() -> None:
    svg = drawn(node(0), node(1, 0), node(2, 0, status="FAILED"), node(3, 1, 2, status="SKIPPED"))

    states = [g.attrib["class"] for g in svg.findall("g")]
    assert states == [
        f"node node-{state}" for state in ("completed", "completed", "failed", "skipped")
    ]
    assert len(svg.findall("path")) == 4
    assert svg.findall("path[@class='edge edge-failed']")


def test_names_cannot_break_the_drawing() -> None:
    svg = drawn(node(0, node_id='"><script>', task_name="</svg>", status="<x>"))

    (box,) = svg.findall("g")
    assert box.find("text").text == '"><script>'  # type: ignore[union-attr]


def test_boxes_link_where_the_page_says() -> None:
    overview = WorkflowOverview(WORKFLOW, [node(0)])

    graph = draw_graph(overview, lambda group: f"/tasks/{group.first.node_id}?a=1&b=2")

    assert Markup('<a href="/tasks/n0?a=1&amp;b=2"') in (graph or "")


def test_what_is_too_large_is_not_drawn() -> None:
    chain = [node(i, *([i - 1] if i else [])) for i in range(BOXES_LIMIT + 1)]

    assert draw_graph(WorkflowOverview(WORKFLOW, chain), nowhere) is None
    assert draw_graph(WorkflowOverview(WORKFLOW, []), nowhere) is None


def test_bars_come_in_the_order_of_time_and_run_on_while_nodes_do() -> None:
    second = timedelta(seconds=1)
    nodes = [
        node(0, started_at=NOW + second, completed_at=NOW + 3 * second),
        node(1, started_at=NOW, completed_at=NOW + second),
        node(2, started_at=NOW + second, completed_at=None, status="RUNNING"),
        node(3, started_at=None, completed_at=None, status="PENDING"),
    ]

    svg = draw_waterfall(groups_of(WorkflowOverview(WORKFLOW, nodes)), NOW + 5 * second)

    bars = ET.fromstring(svg or "").findall("g")
    assert [bar.find("text").text for bar in bars] == ["n1", "n0", "n2"]  # type: ignore[union-attr]
    assert [bar.findall("text")[1].text for bar in bars] == ["1.0 s", "2.0 s", "4.0 s"]
    assert draw_waterfall([], NOW) is None
