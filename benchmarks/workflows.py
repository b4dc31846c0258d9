"""Workflows: fan-outs, chains, and plain tasks beside many waiting nodes."""

import time
from typing import Any

from benchmarks import ours
from benchmarks.stage import connect, worker

# Waiting nodes by plain SQL: workflows whose first node never ends.
WAITING = """
with w as (
    insert into horsies_workflows (id, name, status, root_workflow_id, open_nodes)
    select 'w' || n, 'waiting', 'PAUSED', 'w' || n, 100 from generate_series(1, %(count)s / 100) n
    returning id)
insert into horsies_workflow_tasks (id, workflow_id, task_index, node_id, task_name, dependencies, open_dependencies)
select w.id || '.' || i, w.id, i, 'n' || i, 'noop', array[0], 1 from w, generate_series(0, 99) i
"""  # noqa: E501


def fan(module: Any, width: int) -> Any:
    """1 → width → 1."""
    first = module.noop.node(node_id="first")(number=0)
    wide = [
        module.noop.node(node_id=f"n{number}", waits_for=[first])(number=number)
        for number in range(width)
    ]
    last = module.noop.node(node_id="last", waits_for=wide)(number=1)
    return module.app.workflow("fan", [first, *wide, last], output=last, definition_key="fan")


def chain(module: Any, length: int) -> Any:
    nodes: list[Any] = []
    for number in range(length):
        nodes.append(module.noop.node(node_id=f"n{number}", waits_for=nodes[-1:])(number=number))
    return module.app.workflow("chain", nodes, output=nodes[-1], definition_key="chain")


def fans(url: str, width: int, count: int, *, workers: int = 2) -> float:
    """Nodes per second from the start of `count` fan-outs at once to the end of the last."""
    with ours.sending(url) as module:
        specs = [fan(module, width) for _ in range(count)]
        running = [worker(url, *ours.WIDE) for _ in range(workers)]
        for one in running:
            one.__enter__()
        try:
            module.app.start_many(specs[:1]).unwrap()[0].get(timeout_ms=60_000).unwrap()
            started = time.perf_counter()
            for handle in module.app.start_many(specs).unwrap():
                handle.get(timeout_ms=120_000).unwrap()
            return count * (width + 2) / (time.perf_counter() - started)
        finally:
            for one in running:
                one.__exit__(None, None, None)


def hop_ms(url: str, length: int) -> tuple[float, float]:
    """Milliseconds per hop of a chain, and of one send → result beside it."""
    with ours.sending(url) as module, worker(url, "--processes", "1"):
        for number in range(20):
            module.noop.send(number).unwrap().get(timeout_ms=20_000)
        started = time.perf_counter()
        for number in range(100):
            module.noop.send(number).unwrap().get(timeout_ms=20_000)
        single = (time.perf_counter() - started) * 10
        spec = chain(module, length)
        started = time.perf_counter()
        spec.start().unwrap().get(timeout_ms=120_000).unwrap()
        return (time.perf_counter() - started) * 1000 / length, single


def drain_beside_waiting(url: str, count: int, waiting: int) -> Any:
    """A drain of plain tasks while nodes of workflows wait."""
    with ours.sending(url), connect(url) as connection:
        if waiting:
            connection.execute(WAITING.encode(), {"count": waiting})
            connection.execute("vacuum analyze horsies_workflow_tasks")
        ours.fill(url, "noop", count)
        ours.settle(connection)
        return ours.work_off(url, count, *ours.WIDE)
