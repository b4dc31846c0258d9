"""Log records of tasks, and how text lines show what they belong to."""

import io
import logging
from collections.abc import Iterator

import pytest

from horsies.executors.base import Call
from horsies.executors.current import Running, enter, leave
from horsies.executors.log_records import add_tasks_to_records
from horsies.observability.logs import ContextFormatter


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What the logger `stable` writes, with the record factory of a worker."""
    factory, logger, stream = (
        logging.getLogRecordFactory(),
        logging.getLogger("stable"),
        io.StringIO(),
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(ContextFormatter("%(levelname)s %(message)s"))
    logger.addHandler(handler)
    add_tasks_to_records()
    add_tasks_to_records()
    yield stream
    logger.removeHandler(handler)
    logging.setLogRecordFactory(factory)


def test_lines_of_a_task_name_it_and_others_do_not(written: io.StringIO) -> None:
    logger = logging.getLogger("stable")
    token = enter(Running(Call("t-1", "feed", 2)), "w-1")

    logger.warning("inside", extra={"task_id": "of the user", "attempt": 9})
    leave(token)
    logger.warning("outside")

    assert written.getvalue().splitlines() == [
        "WARNING inside [feed t-1, attempt 2, worker w-1]",
        "WARNING outside",
    ]


def test_message_and_traceback_cannot_pass_for_records_of_their_own(written: io.StringIO) -> None:
    logger = logging.getLogger("stable")
    forged = "no funds\nERROR the disk is full\r\x1b[2J\u2028ERROR and burning"

    try:
        raise ValueError(forged)
    except ValueError:
        logger.exception("failed: %s", forged)
    lines = written.getvalue().split("\n")

    assert lines[0] == "ERROR failed: no funds"
    assert [line for line in lines[1:] if line and not line.startswith("    ")] == []
    assert "\x1b" not in written.getvalue()
    assert len(written.getvalue().splitlines()) == len(lines) - 1
