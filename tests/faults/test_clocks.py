"""Clocks hours apart or set while working: only the database's decides."""

import json
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from support.eventually import eventually
from support.faults import APP_FILE, IS_SHORT, Scene, scene

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(120)]

SHIFTED = str(APP_FILE.with_name("shifted.py"))
FIVE_HOURS_S = 5 * 3600
# Behind is the harder way for a server: processes seem to begin after their runs.
WAYS = [-FIVE_HOURS_S] if IS_SHORT else [-FIVE_HOURS_S, FIVE_HOURS_S]
BOTH_WAYS = pytest.mark.parametrize("off_by_s", WAYS)


@BOTH_WAYS
def test_worker_and_sender_with_a_wrong_clock_change_nothing(
    off_by_s: int, database_url: str, tmp_path: Path
) -> None:
    clock = tmp_path / "clock"
    clock.write_text(str(off_by_s))
    prefetching = {"prefetch_buffer": 5, "claim_lease_ms": 3_000}
    with scene(database_url, app=prefetching) as play:
        _send_shifted(play, clock, "coroutine", 0)
        _send_shifted(play, clock, "coroutine", 1, delay=2)
        _send_shifted(play, clock, "flaky", 2)
        soon = datetime.now(UTC) + timedelta(seconds=2)
        play.send("coroutine", range(3, 4), run_at=soon)
        play.send("coroutine", range(4, 5), good_until=soon + timedelta(minutes=1))
        play.send("coroutine", range(5, 6), good_until=soon - timedelta(minutes=1))
        play.send("child", range(6, 9), -1)  # runs, and two that wait as claims

        play.start_worker("--processes", "1", python=(sys.executable, SHIFTED, str(clock)))
        eventually(lambda: play.begun().keys() >= {0, 1, 2, 3, 4, 6}, within=30)
        clock.write_text(str(-off_by_s))
        play.start_worker("--processes", "1")
        beats = "select count(*) from horsies_heartbeats where role = %s and sent_at > now() - %s"
        lately = timedelta(seconds=3)
        eventually(lambda: play.scalar(beats, "runner", lately) >= 2, within=30)
        play.open_gate()

        play.find_sent()
        play.wait_until_all_ended(within=60)
        play.assert_invariants()
        assert play.begun() == {0: 1, 1: 1, 2: 2, 3: 1, 4: 1, 6: 1, 7: 1, 8: 1}
        assert play.rows("select args::json ->> 0 from horsies_tasks where status = 'EXPIRED'") == [
            ("5",)
        ]
        late = "select (args::json ->> 0)::integer from horsies_tasks where started_at >= %s"
        assert {(1,), (3,)} <= set(play.rows(late, soon - timedelta(seconds=1)))
        assert not play.rows("select id from horsies_tasks where started_at < enqueued_at")


@BOTH_WAYS
def test_server_with_another_clock_is_the_one_that_counts(off_by_s: int, database_url: str) -> None:
    with scene(database_url) as play:
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute(
                "create or replace function horsies_now() returns timestamptz language sql stable "
                f"as $$ select clock_timestamp() + interval '{off_by_s} seconds' $$".encode()
            )
        play.send("coroutine", range(1), -1)
        play.send("child", range(1, 2), -1)
        frozen = play.start_worker("--processes", "1")
        eventually(lambda: play.begun().total() == 2, within=30)
        other = play.start_worker("--processes", "1")
        play.wait_ready(other)

        # Silent for two heartbeats but alive: not given up before the whole threshold.
        frozen.send_signal(signal.SIGSTOP)
        silent = "select horsies_now() - max(sent_at) > '4 seconds' from horsies_heartbeats"
        eventually(lambda: play.scalar(silent), within=30)
        frozen.send_signal(signal.SIGCONT)
        assert play.count("RUNNING") == 2

        # Dead: given up at once.
        play.kill(frozen)
        play.open_gate()
        play.wait_until_all_ended(within=30)
        play.assert_invariants()
        assert play.begun() == {0: 2, 1: 2}


def _send_shifted(play: Scene, clock: Path, kind: str, number: int, **options: float) -> None:
    command = [sys.executable, SHIFTED, str(clock), str(APP_FILE), kind, str(number), "0"]
    subprocess.run([*command, json.dumps(options)], env=play.environment, check=True)
