"""Two unequal workers share the work by their speed: counted, not timed."""

import pytest

from support.apps import good
from support.eventually import eventually
from support.faults import scene

READY = "select count(distinct pid) from horsies_worker_states"
SHARE = """
    select count(*) filter (where s.pid = %s)::float / count(*) from horsies_task_attempts a
    join (select distinct worker_id, pid from horsies_worker_states) s on s.worker_id = a.worker_id
    where a.started_at > %s
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "option", "sizes"),
    [("coroutine", "--concurrency", (10, 40)), ("child", "--processes", (1, 3))],
    ids=["coroutines", "children"],
)
def test_unequal_workers_share_by_their_speed(
    database_url: str, kind: str, option: str, sizes: tuple[int, int]
) -> None:
    with scene(database_url) as play:
        small, _large = [play.start_worker(option, str(size)) for size in sizes]
        eventually(lambda: play.scalar(READY) == 2, within=30)
        fair = sizes[0] / sum(sizes)

        def is_shared() -> bool:
            count = 50 * sum(sizes)
            ended = play.count("COMPLETED") + count
            before = play.scalar("select now()")
            good(getattr(play.module, kind).send_many((n, 0.05) for n in range(count)))
            eventually(lambda: play.count("COMPLETED") == ended, within=60)
            share: float = play.scalar(SHARE, small.pid, before)
            return fair * 0.8 <= share <= fair * 1.2

        # Six rounds at most: a busy machine does not give both workers their time.
        assert any(is_shared() for _ in range(6))
