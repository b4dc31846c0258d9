"""AppConfig: all settings of an app, checked as a whole."""

import logging
import os
from collections.abc import Iterator
from typing import Literal

from pydantic import ConfigDict, Field

from horsies.codes import ErrorCode
from horsies.config.database import PostgresConfig
from horsies.config.exceptions import ExceptionMapper, default_code_problems, mapper_problems
from horsies.config.queues import CustomQueueConfig, QueueMode
from horsies.config.recovery import RecoveryConfig
from horsies.config.resilience import WorkerResilienceConfig
from horsies.config.schedules import ScheduleConfig
from horsies.config.settings import Refused, Settings
from horsies.errors import ConfigurationError, HorsiesError
from horsies.passwords import mask_url

DEFAULT_CLAIM_LEASE_MS = 60_000


def _default_broker() -> PostgresConfig:
    try:
        return PostgresConfig.from_environment()
    except HorsiesError as error:
        raise Refused(error) from None


class AppConfig(Settings):
    """The configuration of one app; immutable and always valid."""

    model_config = ConfigDict(hide_input_in_errors=True)  # it may be a URL with its password

    broker: PostgresConfig = Field(default_factory=_default_broker)
    queue_mode: QueueMode = QueueMode.DEFAULT
    custom_queues: list[CustomQueueConfig] | None = None
    cluster_wide_cap: int | None = None
    prefetch_buffer: int | None = None
    claim_lease_ms: int | None = None
    max_claim_renew_age_ms: int = 180_000
    recovery: RecoveryConfig = Field(default_factory=RecoveryConfig)
    resilience: WorkerResilienceConfig = Field(default_factory=WorkerResilienceConfig)
    schedule: ScheduleConfig | None = None
    exception_mapper: ExceptionMapper = Field(default_factory=dict[type[BaseException], str])
    default_unhandled_error_code: str = "UNHANDLED_EXCEPTION"
    resend_on_transient_err: bool = False
    task_timeout_ms: int | None = Field(default=None, ge=1_000, le=86_400_000)
    allow_plain_returns: bool = False
    payload_warn_bytes: int | None = Field(default=1_048_576, ge=1)
    payload_max_bytes: int | None = Field(default=None, ge=1)
    capture_task_output: bool = True
    task_log_max_bytes: int = Field(default=65_536, ge=1_024, le=10_485_760)
    unknown_tasks: Literal["fail", "leave"] = "fail"

    @property
    def effective_claim_lease_ms(self) -> int:
        """How long a claim stays exclusive."""
        return DEFAULT_CLAIM_LEASE_MS if self.claim_lease_ms is None else self.claim_lease_ms

    def problems(self) -> Iterator[HorsiesError]:
        yield from self._queue_problems()
        yield from self._cap_problems()
        yield from self._lease_problems()
        yield from mapper_problems(self.exception_mapper, owner="AppConfig")
        yield from default_code_problems(self.default_unhandled_error_code, owner="AppConfig")

    def _queue_problems(self) -> Iterator[HorsiesError]:
        code = ErrorCode.CONFIG_INVALID_QUEUE_MODE
        names = [queue.name for queue in self.custom_queues or ()]
        notes = [f"queue_mode={self.queue_mode.name}", f"custom_queues={names or None}"]
        if self.queue_mode is QueueMode.DEFAULT:
            if self.custom_queues is not None:
                text = "custom_queues must be None in DEFAULT mode"
                cure = "remove custom_queues, or set queue_mode=QueueMode.CUSTOM"
                yield ConfigurationError(text, code, notes=notes, help_text=cure)
        elif not names:
            text = "custom_queues required in CUSTOM mode"
            cure = "list at least one CustomQueueConfig(name=...)"
            yield ConfigurationError(text, code, notes=notes, help_text=cure)
        elif len(set(names)) < len(names):
            text = "duplicate queue names in custom_queues"
            cure = "give each queue a unique name"
            yield ConfigurationError(text, code, notes=notes, help_text=cure)

    def _cap_problems(self) -> Iterator[HorsiesError]:
        code = ErrorCode.CONFIG_INVALID_CLUSTER_CAP
        if self.cluster_wide_cap is None:
            return
        notes = [
            f"cluster_wide_cap={self.cluster_wide_cap}",
            f"prefetch_buffer={self.prefetch_buffer}",
        ]
        if self.cluster_wide_cap <= 0:
            text = "cluster_wide_cap must be positive"
            cure = "use a positive number, or None for no limit"
            yield ConfigurationError(text, code, notes=notes, help_text=cure)
        if self.prefetch_buffer is not None and self.prefetch_buffer > 0:
            text = "cluster_wide_cap incompatible with prefetch mode"
            cure = "set prefetch_buffer to 0 or None, or remove cluster_wide_cap"
            yield ConfigurationError(text, code, notes=notes, help_text=cure)

    def _lease_problems(self) -> Iterator[HorsiesError]:
        interval_ms = self.recovery.claimer_heartbeat_interval_ms
        lease_ms = self.effective_claim_lease_ms
        notes = [
            f"prefetch_buffer={self.prefetch_buffer}",
            f"claim_lease_ms={self.claim_lease_ms} (effective {lease_ms}ms)",
            f"max_claim_renew_age_ms={self.max_claim_renew_age_ms}",
            f"claimer_heartbeat_interval_ms={interval_ms}ms",
        ]
        found: list[tuple[str, str]] = []
        if self.prefetch_buffer is not None and self.prefetch_buffer < 0:
            found.append(
                ("prefetch_buffer must be non-negative", "use 0, a positive number or None")
            )
        if (
            self.prefetch_buffer is not None
            and self.prefetch_buffer > 0
            and self.claim_lease_ms is None
        ):
            found.append(
                (
                    "claim_lease_ms required when prefetch_buffer > 0",
                    f"set claim_lease_ms, for example {DEFAULT_CLAIM_LEASE_MS}",
                )
            )
        if lease_ms <= 0:
            found.append(("claim_lease_ms must be positive", "use a positive number or None"))
        elif lease_ms < 2 * interval_ms:
            found.append(
                (
                    "claim lease too short relative to claimer heartbeat",
                    f"set claim_lease_ms to at least {2 * interval_ms}",
                )
            )
        if self.max_claim_renew_age_ms <= 0:
            found.append(("max_claim_renew_age_ms must be positive", "use a positive number"))
        elif self.max_claim_renew_age_ms < lease_ms:
            found.append(
                (
                    "max_claim_renew_age_ms must be >= effective claim lease",
                    f"set max_claim_renew_age_ms to at least {lease_ms}",
                )
            )
        for text, cure in found:
            yield ConfigurationError(
                text, ErrorCode.CONFIG_INVALID_PREFETCH, notes=notes, help_text=cure
            )

    def log_config(self, logger: logging.Logger | None = None) -> None:
        """Log the configuration as one INFO record with masked passwords; do nothing in a child."""
        if os.environ.get("HORSIES_CHILD_PROCESS") == "1":
            return
        (logger or logging.getLogger("horsies")).info("%s", self._describe())

    def _describe(self) -> str:
        queues = [
            f"{queue.name} (priority {queue.priority}, max_concurrency {queue.max_concurrency})"
            for queue in self.custom_queues or ()
        ]
        broker = self.broker
        url = "embedded" if broker.is_embedded else mask_url(broker.database_url)
        lines = {
            "queue_mode": self.queue_mode.name,
            "custom_queues": ", ".join(queues) or None,
            "cluster_wide_cap": self.cluster_wide_cap,
            "prefetch_buffer": self.prefetch_buffer,
            "claim_lease_ms": self.effective_claim_lease_ms,
            "broker": f"database_url={url} pool_size={broker.pool_size} "
            f"max_overflow={broker.max_overflow}",
            "recovery": self.recovery,
            "resilience": self.resilience,
            "schedule": self.schedule,
        }
        return "AppConfig:\n" + "\n".join(f"  {name}: {value}" for name, value in lines.items())
