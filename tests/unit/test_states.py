"""Task states: values, words, numbers and allowed moves."""

from enum import Enum

import pytest

from horsies.states import (
    TASK_TERMINAL_STATES,
    TASK_TRANSITIONS,
    TaskAttemptOutcome,
    TaskStatus,
    WorkflowStatus,
    read_status,
)

S = TaskStatus


@pytest.mark.seed("S9")
def test_names_equal_their_stored_values() -> None:
    assert [status.value for status in TaskStatus] == [status.name for status in TaskStatus]
    assert len(TaskStatus) == 7


def test_status_is_a_plain_enum_and_outcome_a_text_enum() -> None:
    assert not issubclass(TaskStatus, str)
    assert issubclass(TaskAttemptOutcome, str)
    assert issubclass(TaskAttemptOutcome, Enum)
    assert {o.value for o in TaskAttemptOutcome} == {"COMPLETED", "FAILED", "WORKER_FAILURE"}


@pytest.mark.seed("S8", "S11")
def test_terminal_states_are_exactly_the_four_ends() -> None:
    assert isinstance(TASK_TERMINAL_STATES, frozenset)
    assert {s.name for s in TASK_TERMINAL_STATES} == {"COMPLETED", "FAILED", "CANCELLED", "EXPIRED"}


@pytest.mark.seed("S10")
@pytest.mark.parametrize("status", list(TaskStatus), ids=lambda s: s.name)
def test_is_terminal_agrees_with_the_set(status: TaskStatus) -> None:
    assert status.is_terminal is (status in TASK_TERMINAL_STATES)


@pytest.mark.seed("S67", "S68")
@pytest.mark.parametrize(
    ("status", "display", "numeric"),
    [
        (S.PENDING, "Queued", 0),
        (S.CLAIMED, "Claimed", 0),
        (S.RUNNING, "In progress", 1),
        (S.COMPLETED, "Completed", 2),
        (S.FAILED, "Failed", 3),
        (S.CANCELLED, "Cancelled", 4),
        (S.EXPIRED, "Expired", 5),
    ],
)
def test_every_state_has_words_and_a_number(status: TaskStatus, display: str, numeric: int) -> None:
    assert (status.display, status.numeric) == (display, numeric)


@pytest.mark.seed("S12")
def test_transitions_are_those_of_the_diagram() -> None:
    expected = {
        S.PENDING: {S.CLAIMED, S.RUNNING, S.EXPIRED, S.CANCELLED},
        S.CLAIMED: {S.CLAIMED, S.RUNNING, S.PENDING, S.EXPIRED, S.CANCELLED},
        S.RUNNING: {S.COMPLETED, S.FAILED, S.PENDING, S.CANCELLED},
        S.COMPLETED: {S.PENDING},
        S.FAILED: {S.PENDING},
        S.CANCELLED: {S.PENDING},
        S.EXPIRED: set[TaskStatus](),
    }

    assert expected == TASK_TRANSITIONS


def test_state_of_a_newer_release_is_shown_as_it_is() -> None:
    task, workflow = read_status(TaskStatus, "FROZEN"), read_status(WorkflowStatus, "FROZEN")

    assert (task.value, task.display, task.is_terminal) == ("FROZEN", "FROZEN", False)
    assert (workflow, workflow.is_terminal) == ("FROZEN", False)
    assert task not in list(TaskStatus)
    assert read_status(TaskStatus, "FAILED") is TaskStatus.FAILED
