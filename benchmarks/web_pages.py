"""How long each page of the dashboard takes beside a long history and a large backlog."""

import asyncio
import time
from collections.abc import Mapping

import httpx

from benchmarks import ours
from benchmarks.stage import connect
from horsies.web import create_app

_QUEUES = 8
_HISTORY = """
insert into horsies_queue_history (step_s, starts_at, queue_name, completed_count, start_latencies, run_times)
select step, date_bin(make_interval(secs => step), now() - n * make_interval(secs => step), 'epoch'), queue, 600,
    array_fill(10, array[32]), array_fill(10, array[40])
from unnest(array[10, 60, 240, 1200, 7200, 28800]) step, generate_series(1, 400) n, unnest(%s::text[]) queue
on conflict do nothing
"""  # noqa: E501
_SNAPSHOTS = """
insert into horsies_worker_states (worker_id, snapshot_at, hostname, pid, processes, queues, tasks_running,
    memory_usage_mb, children_memory_mb, cpu_percent, max_claim_batch, max_claim_per_worker, worker_started_at)
select 'worker-' || w, now() - n * interval '5 s', 'host-' || w, 1000 + w, 8, array['q0', 'q1'], 8, 90, 700, 60, 0, 0,
    now() - interval '1 day'
from generate_series(1, 20) w, generate_series(0, 5000) n
"""  # noqa: E501
PAGES = (
    "/?span=5m",
    "/?span=6h",
    "/?span=30d",
    "/?span=6h&queue=q1",
    "/tasks",
    "/tasks?q=status:completed",
    "/tasks?q=status:failed",
    "/tasks?q=tag:nobody",
    "/tasks?q=kwargs.order=42",
    "/tasks?q=queue:q3 status:pending",
    "/queues",
    "/workers",
    "/workers/worker-1?window=24h",
    "/tasks/{task}",
    "/task?type=json&task_id={task}",
)


def measured(url: str, finished: int, waiting: int, rounds: int) -> Mapping[str, list[float]]:
    """Milliseconds of each page, each time as if nobody had asked before."""
    ours.bulk_fill(url, "COMPLETED", 1, finished, queues=_QUEUES)
    ours.bulk_fill(url, "PENDING", finished + 1, waiting, queues=_QUEUES)
    with connect(url) as connection:
        connection.execute(_HISTORY.encode(), [["", *(f"q{n}" for n in range(_QUEUES))]])
        connection.execute(_SNAPSHOTS.encode())
        connection.execute("vacuum analyze")
        ((task_id,),) = connection.execute(
            "select id from horsies_tasks where status = 'PENDING' order by id desc limit 1"
        ).fetchall()
    return asyncio.run(_measured(url, str(task_id), rounds))


async def _measured(url: str, task_id: str, rounds: int) -> Mapping[str, list[float]]:
    with ours.sending(url) as module:
        served = create_app(module.app)
        transport = httpx.ASGITransport(app=served)
        found: dict[str, list[float]] = {page: [] for page in PAGES}
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for number in range(rounds + 1):
                for page, times in found.items():
                    served.state.site.reads.clear()
                    began = time.perf_counter()
                    response = await client.get(page.format(task=task_id))
                    took = 1000 * (time.perf_counter() - began)
                    assert response.status_code == 200, (page, response.status_code)
                    if number:  # the first round connects and compiles the templates
                        times.append(took)
        return found
