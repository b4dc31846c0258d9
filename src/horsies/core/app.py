"""Re-export: Horsies."""

from horsies.app import (
    Horsies,
)

__all__ = [
    "Horsies",
]
