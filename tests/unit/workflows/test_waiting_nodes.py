"""Nodes that wait for a time or an event, and how a graph is drawn."""

import datetime as dt
from typing import Any

import pytest

from horsies import (
    AppConfig,
    Horsies,
    SleepNode,
    SubWorkflowNode,
    TaskError,
    TaskNode,
    TaskResult,
    WorkflowValidationError,
    from_node,
)
from horsies.workflows.mermaid import DrawnNode, draw_mermaid
from support.codec_models import Horse
from support.flows import BROKER, Numbers, app, double, feed, load, spec_of

HOUR = dt.timedelta(hours=1)
LATER = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
bought = app.event("waiting.bought", Horse)
sleep_of: Any = SleepNode


@pytest.mark.parametrize("options", [{"duration": HOUR}, {"until": LATER}])
def test_a_sleep_takes_a_duration_or_an_instant(options: dict[str, Any]) -> None:
    frozen: Any = spec_of(sleep_of(**options)).tasks[0]

    assert (frozen.duration, frozen.until) == (options.get("duration"), options.get("until"))
    assert frozen.ok_type is type(None)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "exactly one of duration and until"),
        ({"duration": HOUR, "until": LATER}, "exactly one of duration and until"),
        ({"duration": -HOUR}, "duration must be a timedelta of zero or more"),
        ({"duration": 5}, "duration must be a timedelta"),
        ({"until": LATER.replace(tzinfo=None)}, "until must be a timezone-aware datetime"),
    ],
    ids=["none", "both", "negative", "number", "naive"],
)
def test_other_sleeps_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(WorkflowValidationError, match=text):
        spec_of(sleep_of(**options))


def test_an_event_gives_its_payload_to_other_nodes() -> None:
    root = load.node()()
    wait = bought.node(key="order-1", timeout=HOUR, waits_for=[root], node_id="wait")
    after = feed.node()(horse=from_node(wait))

    frozen: Any = spec_of(root, wait, after).tasks[1]

    assert (frozen.event, frozen.event_key, frozen.timeout) == (bought, "order-1", HOUR)
    assert (frozen.node_id, [n.name for n in frozen.waits_for]) == ("wait", ["flows.load"])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"key": ""}, "the key of an event"),
        ({"key": "x" * 256}, "the key of an event"),
        ({"key": "k", "timeout": -HOUR}, "timeout must be a timedelta of zero or more"),
    ],
)
def test_an_event_without_key_or_sense_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(WorkflowValidationError, match=text):
        spec_of(bought.node(**options))


def test_an_event_is_known_by_one_name_and_type() -> None:
    own = Horsies(AppConfig(broker=BROKER))
    first = own.event("paid", int)

    assert own.event("paid", int) is first
    assert own.events.by_name["paid"] is first
    with pytest.raises(WorkflowValidationError, match="already defined with another payload type"):
        own.event("paid", str)


@pytest.mark.parametrize("name", ["", "x" * 256, 5])
def test_an_event_needs_a_name(name: Any) -> None:
    with pytest.raises(WorkflowValidationError, match="needs a name"):
        app.event(name, int)


def test_a_graph_is_drawn_with_kinds_and_joins() -> None:
    root = TaskNode(fn=load, node_id="load")
    each = double.node(each=from_node(root), node_id="each")()
    rest = SleepNode(HOUR, waits_for=[root, each], join="any", node_id="rest")
    wait = bought.node(key="k", waits_for=[rest], node_id="wait")
    child = SubWorkflowNode(
        Numbers, waits_for=[root, rest, wait], join="quorum", min_success=2, node_id="numbers"
    )

    assert spec_of(root, each, rest, wait, child).to_mermaid() == (
        "flowchart TD\n"
        '    n0["load<br/>flows.load"]\n'
        '    n1[/"each<br/>flows.double"/]\n'
        '    n2(["rest<br/>sleep"])\n'
        '    n3{{"wait<br/>waiting.bought"}}\n'
        '    n4[["numbers"]]\n'
        "    n0 --> n1\n"
        '    n0 -. "any" .-> n2\n'
        '    n1 -. "any" .-> n2\n'
        "    n2 --> n3\n"
        '    n0 -. "2 of 3" .-> n4\n'
        '    n2 -. "2 of 3" .-> n4\n'
        '    n3 -. "2 of 3" .-> n4\n'
    )


def test_names_cannot_break_the_drawing() -> None:
    @app.task('waiting."x"<b>\n#1')
    def odd() -> TaskResult[None, TaskError]:
        return TaskResult(ok=None)

    drawn = spec_of(TaskNode(fn=odd, node_id="end")).to_mermaid()

    assert '    n0["end<br/>waiting.#quot;x#quot;#lt;b#gt; #35;1"]\n' in drawn


def test_states_are_drawn_as_colours() -> None:
    nodes = [
        DrawnNode("a", "a", "task", status="COMPLETED"),
        DrawnNode("b", "b", "task", ["a"], status="COMPLETED"),
        DrawnNode("c", "c", "task", ["a"], status="FAILED"),
    ]

    drawn = draw_mermaid(nodes)

    assert '    n0["a<br/>COMPLETED"]\n' in drawn
    assert "    class n0,n1 COMPLETED\n" in drawn
    assert "    class n2 FAILED\n" in drawn
    assert drawn.count("classDef") == 2
