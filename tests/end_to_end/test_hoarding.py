"""Long tasks are shared: no worker sits on work that another could begin."""

import pytest

from support.eventually import eventually
from support.faults import scene

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def test_ten_long_tasks_after_short_ones_are_shared_by_two_workers(database_url: str) -> None:
    with scene(database_url) as play:
        for _ in range(2):
            play.start_worker("--processes", "1")
        play.send_many("child", range(2), -1)
        eventually(lambda: len(play.begun()) == 2, within=30)  # both have their child
        play.open_gate()
        play.send_many("child", range(2, 300))
        play.wait_until_all_ended(within=30)

        play.send_many("slow_child", range(300, 310), 0.5)

        eventually(lambda: play.count("COMPLETED") == 310, within=30)
        shares = play.rows(
            "select count(*) from horsies_tasks where task_name = 'slow_child' "
            "group by claimed_by_worker_id order by 1"
        )
        # Five each, but what is handed back lies behind the marks of the other worker, which looks
        # there for a thirtieth of its time only. From a hoarder it would get the first one alone.
        assert len(shares) == 2
        assert min(count for (count,) in shares) >= 2, shares
        play.assert_invariants()
