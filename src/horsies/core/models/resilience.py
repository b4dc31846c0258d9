"""Re-export: WorkerResilienceConfig."""

from horsies.config import (
    WorkerResilienceConfig,
)

__all__ = [
    "WorkerResilienceConfig",
]
