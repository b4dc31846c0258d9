"""Re-export: PostgresBroker."""

from horsies.broker.postgres import (
    PostgresBroker,
)

__all__ = [
    "PostgresBroker",
]
