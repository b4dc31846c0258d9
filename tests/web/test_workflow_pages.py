"""The pages of workflows: list, graph, waterfall, nodes, and what operators do there."""

from typing import Any

from horsies import Horsies, SubWorkflowNode, TaskError, TaskNode, TaskResult, WorkflowDefinition
from horsies.web import Role, Viewer
from support.apps import good, make_app, working
from support.web import clicking, texts

Number = TaskResult[int, TaskError]


def make(database_url: str) -> tuple[Horsies, Any]:
    app = make_app(database_url)

    @app.task("double")
    async def double(n: int) -> Number:
        if n < 0:
            return TaskResult(err=TaskError(error_code="NEGATIVE", message="<b>below</b> zero"))
        return TaskResult(ok=2 * n)

    return app, double


async def test_workflow_shows_its_graph_and_why_nodes_did_not_run(database_url: str) -> None:
    app, double = make(database_url)
    first = double.node(node_id="first")(n=1)
    bad = double.node(node_id="bad", waits_for=[first])(n=-1)
    behind = double.node(node_id="behind", waits_for=[bad])(n=3)
    wide = [double.node(node_id=f"w{i}", waits_for=[first])(n=i) for i in range(1_000)]
    spec = app.workflow("daily", [first, bad, behind, *wide], definition_key="daily")

    async with working(app), clicking(app) as clicks:
        handle = good(await spec.start_async())
        assert (await handle.get_async(30_000)).is_err()
        listed = await clicks.open("/workflows?status=failed")
        page = await clicks.open(f"/workflows/{handle.workflow_id}")
        failed = await clicks.open(f"/workflows/{handle.workflow_id}?only=failed")
        members = await clicks.open(f"/workflows/{handle.workflow_id}?group=3")

    assert "1,003 of 1,003" in listed
    assert page.count('class="node ') == 4, "a thousand nodes that are alike are one box"
    assert sorted(texts(page, "name")) == ["bad", "behind", "double × 1,000", "first"]
    assert "skipped: bad failed" in page
    assert "&lt;b&gt;below&lt;/b&gt; zero" in page
    assert "<b>below" not in page
    assert failed.count("<tr data-key") == 1
    assert members.count("<tr data-key") == 200
    assert "and 800 more" in members


async def test_children_unfold_in_place(database_url: str) -> None:
    app, double = make(database_url)

    class Child(WorkflowDefinition[int]):
        name = "child"
        definition_key = "pages.child"
        inner = TaskNode(fn=double, kwargs={"n": 4})

    child = SubWorkflowNode(workflow_def=Child, node_id="child")
    spec = app.workflow("parent", [child], definition_key="pages.parent")

    async with working(app), clicking(app) as clicks:
        handle = good(await spec.start_async())
        await handle.get_async(20_000)
        (info,) = good(await handle.tasks_async())
        page = await clicks.open(f"/workflows/{handle.workflow_id}")
        unfolded = await clicks.open(f"/workflows/{handle.workflow_id}?open={info.sub_workflow_id}")

    assert f"open={info.sub_workflow_id}#w-{info.sub_workflow_id}" in page
    assert "inner" not in texts(page, "name")
    assert {"inner", "▸ child"} == set(texts(unfolded, "name"))


async def test_operators_steer_and_the_audit_says_who(database_url: str) -> None:
    app, double = make(database_url)
    paid = app.event("paid", int)
    wait = paid.node(key="7", node_id="wait")
    spec = app.workflow("order", [wait], definition_key="pages.order")
    other = app.workflow("order", [double.node(node_id="n")(n=-1)], definition_key="pages.other")

    async with working(app), clicking(app) as clicks:
        handle = good(await spec.start_async())
        here = f"/workflows/{handle.workflow_id}"
        said = [await clicks.send(f"{here}/{word}", reason="lunch") for word in ("pause", "pause")]
        assert "The workflow is paused." in said[0]
        assert "Nothing changed: a workflow that is paused cannot be paused." in said[1]
        assert "running again" in await clicks.send(f"{here}/resume")
        assert "is not JSON" in await clicks.send(f"{here}/event", 400, name="paid", payload="{")
        refused = await clicks.send(f"{here}/event", 404, name="paid", key="7", payload='"much"')
        assert "valid integer" in refused
        sent = await clicks.send(f"{here}/event", name="paid", key="7", payload="5")
        assert "Event paid with key 7 is sent." in sent
        assert (await handle.get_async(20_000)).is_ok()
        failed = good(await other.start_async())
        await failed.get_async(20_000)
        assert "running again" in await clicks.send(f"/workflows/{failed.workflow_id}/retry")
        await failed.get_async(20_000)
        again = f"/workflows/{failed.workflow_id}/retry"
        assert "has no such node" in await clicks.send(again, 404, from_node="nowhere")
        waits = paid.node(key="never", node_id="waits")
        endless = app.workflow("endless", [waits], definition_key="pages.endless")
        running = good(await endless.start_async())
        assert "is cancelled" in await clicks.send(f"/workflows/{running.workflow_id}/cancel")
        audit = await clicks.open("/maintenance")

    assert audit.count("<td>ann</td>") == 6
    assert "lunch" in audit


async def test_readers_look_and_do_not_touch(database_url: str) -> None:
    app, double = make(database_url)
    spec = app.workflow("one", [double.node(node_id="n")(n=1)], definition_key="pages.one")
    handle = good(await spec.start_async())

    async with clicking(app, Viewer("bob", Role.READER)) as clicks:
        page = await clicks.open(f"/workflows/{handle.workflow_id}")
        refused = await clicks.send(f"/workflows/{handle.workflow_id}/cancel", 403)

    assert "<form" not in page.partition("<main")[2].partition("</main")[0]
    assert "your role is read-only" in refused
    assert good(await handle.status_async()).value == "RUNNING"


async def test_what_does_not_exist_is_said(database_url: str) -> None:
    app, _ = make(database_url)

    async with clicking(app) as clicks:
        assert "There is no workflow nothing." in await clicks.open("/workflows/nothing", 404)
        assert "the states are" in await clicks.open("/workflows?status=happy", 400)
        assert "No workflow has been started yet" in await clicks.open("/workflows")
        assert "No workflow matches" in await clicks.open("/workflows?name=none")
