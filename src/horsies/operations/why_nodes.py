"""Why a node of a workflow that has no task has not begun or ended."""

from collections.abc import Iterator, Sequence

from horsies.operations.why_reading import Reason, WhyNode
from horsies.operations.words import listed, moment

_ENDED = ("COMPLETED", "FAILED", "SKIPPED")
_ENDED_WORKFLOW = ("COMPLETED", "FAILED", "CANCELLED")


def node_reasons(node: WhyNode, waited_for: Sequence[WhyNode]) -> Iterator[Reason]:
    """One for each rule that holds it back; `waited_for` are the nodes it depends on."""
    if node.status in _ENDED:
        yield Reason("node_ended", f"It has ended: {node.status}.")
        return
    if node.workflow_status == "PAUSED":
        yield Reason(
            "workflow_paused",
            f"Its workflow {node.workflow_name} is paused.",
            f"horsies workflow resume MODULE {node.workflow_id}",
        )
    if node.workflow_status in _ENDED_WORKFLOW:
        status = node.workflow_status
        text = f"Its workflow {node.workflow_name} has ended: {status}. It will not begin."
        yield Reason("workflow_ended", text, f"horsies workflow retry MODULE {node.workflow_id}")
        return
    yield from _open_reasons(node, waited_for)


def _open_reasons(node: WhyNode, waited_for: Sequence[WhyNode]) -> Iterator[Reason]:
    open_nodes = [one for one in waited_for if one.status not in _ENDED]
    if node.status == "PENDING" and open_nodes:
        said = [f"{one.node_id or one.task_index} ({one.status})" for one in open_nodes]
        which = {"any": "the first of ", "quorum": "enough of "}.get(node.join_type, "")
        what = "nodes" if len(said) > 1 else "node"
        yield Reason(
            "waits_for_node",
            f"It waits for {which}{what} {listed(said)}.",
            f"horsies why {node.workflow_id}/{open_nodes[0].node_id}",
        )
    if node.status == "READY" and node.max_in_flight is not None:
        yield Reason(
            "max_in_flight",
            f"At most {node.max_in_flight} elements of its list are in flight at once.",
            "wait for one to end, or give the node a larger max_in_flight",
        )
    elif node.status == "READY" and node.kind == "sub_workflow":
        yield Reason("ready", "It is ready: a live worker starts its workflow within seconds.")
    if node.status == "RUNNING" and node.sub_workflow_id is not None:
        name, status = node.sub_workflow_name, node.sub_workflow_status
        yield Reason(
            "sub_workflow",
            f"It waits for its workflow {name}, {node.sub_workflow_id} ({status}).",
            f"horsies workflow show MODULE {node.sub_workflow_id}",
        )
    if node.status == "RUNNING" and node.kind == "event":
        yield Reason(
            "waits_for_event",
            f"It waits for the event {node.event_name} with key {node.event_key}.",
            f'app.send_event("{node.event_name}", "{node.event_key}", ...)',
        )
    elif node.status == "RUNNING" and node.wait_until is not None:
        until = moment(node.wait_until, node.read_at)
        yield Reason("sleeps", f"It sleeps until {until}.")
