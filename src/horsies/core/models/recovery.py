"""Re-export: RecoveryConfig."""

from horsies.config import (
    RecoveryConfig,
)

__all__ = [
    "RecoveryConfig",
]
