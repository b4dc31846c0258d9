"""Re-export: PostgresConfig."""

from horsies.config import (
    PostgresConfig,
)

__all__ = [
    "PostgresConfig",
]
