"""How a worker handles an unavailable database: backoff and the polling fallback."""

from collections.abc import Iterator
from typing import ClassVar

from pydantic import ConfigDict, Field

from horsies.codes import ErrorCode
from horsies.config.settings import Settings
from horsies.errors import ConfigurationError, HorsiesError


class WorkerResilienceConfig(Settings):
    """Delays between attempts to reach the database; 0 attempts means no limit."""

    model_config = ConfigDict(frozen=False)
    phase_name: ClassVar[str] = "resilience"

    db_retry_initial_ms: int = Field(default=500, ge=100, le=60_000)
    db_retry_max_ms: int = Field(default=30_000, ge=500, le=300_000)
    db_retry_max_attempts: int = Field(default=0, ge=0, le=10_000)
    notify_poll_interval_ms: int = Field(default=5_000, ge=1_000, le=300_000)

    def problems(self) -> Iterator[HorsiesError]:
        if self.db_retry_max_ms < self.db_retry_initial_ms:
            yield ConfigurationError(
                "db_retry_max_ms must be >= db_retry_initial_ms",
                ErrorCode.CONFIG_INVALID_RESILIENCE,
                notes=[
                    f"db_retry_initial_ms={self.db_retry_initial_ms}ms",
                    f"db_retry_max_ms={self.db_retry_max_ms}ms",
                ],
                help_text="increase db_retry_max_ms or reduce db_retry_initial_ms",
            )
