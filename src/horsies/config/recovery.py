"""When the tasks of an unresponsive worker are recovered, and how long old rows are kept."""

from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from horsies.codes import ErrorCode
from horsies.config.settings import Refused, Settings
from horsies.errors import ConfigurationError, HorsiesError
from horsies.states import TASK_TERMINAL_STATES, TaskStatus

_RetentionHours = Annotated[int, Field(ge=1, le=43_800)]


def _terminal_keys(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {_terminal_state(key): hours for key, hours in value.items()}


def _terminal_state(key: object) -> TaskStatus:
    names = sorted(status.value for status in TASK_TERMINAL_STATES)
    found = key.value if isinstance(key, TaskStatus) else key
    if found in names:
        return TaskStatus(found)
    raise Refused(
        ConfigurationError(
            f"retention_hours_by_status: {found!r} is not a terminal task state",
            ErrorCode.CONFIG_INVALID_RECOVERY,
            notes=[f"terminal states: {', '.join(names)}"],
            help_text="use only states in which a task has ended",
        )
    )


class RecoveryConfig(Settings):
    """Heartbeats, staleness thresholds and retention. Raise thresholds to avoid false alarms."""

    phase_name: ClassVar[str] = "recovery"

    auto_requeue_stale_claimed: bool = True
    claimed_stale_threshold_ms: int = Field(default=120_000, ge=1_000, le=3_600_000)
    auto_fail_stale_running: bool = True
    running_stale_threshold_ms: int = Field(default=300_000, ge=1_000, le=7_200_000)
    check_interval_ms: int = Field(default=30_000, ge=1_000, le=600_000)
    runner_heartbeat_interval_ms: int = Field(default=30_000, ge=1_000, le=120_000)
    claimer_heartbeat_interval_ms: int = Field(default=30_000, ge=1_000, le=120_000)
    heartbeat_retention_hours: int | None = Field(default=24, ge=1, le=8_760)
    worker_state_retention_hours: int | None = Field(default=168, ge=1, le=8_760)
    terminal_record_retention_hours: int | None = Field(default=720, ge=1, le=43_800)
    retention_hours_by_status: Annotated[
        dict[TaskStatus, _RetentionHours | None], BeforeValidator(_terminal_keys)
    ] = Field(default_factory=dict[TaskStatus, int | None])

    def problems(self) -> Iterator[HorsiesError]:
        yield from _threshold_problem(
            "running", self.running_stale_threshold_ms, "runner", self.runner_heartbeat_interval_ms
        )
        yield from _threshold_problem(
            "claimed",
            self.claimed_stale_threshold_ms,
            "claimer",
            self.claimer_heartbeat_interval_ms,
        )


def _threshold_problem(
    state: str, threshold_ms: int, role: str, interval_ms: int
) -> Iterator[HorsiesError]:
    if threshold_ms >= 2 * interval_ms:
        return
    yield ConfigurationError(
        f"{state}_stale_threshold_ms too low",
        ErrorCode.CONFIG_INVALID_RECOVERY,
        notes=[
            f"{state}_stale_threshold_ms={threshold_ms}ms",
            f"{role}_heartbeat_interval_ms={interval_ms}ms",
            "threshold must be at least 2x heartbeat interval",
        ],
        help_text=f"set {state}_stale_threshold_ms to at least {2 * interval_ms}",
    )
