"""Re-export: ExceptionMapper."""

from horsies.config import (
    ExceptionMapper,
)

__all__ = [
    "ExceptionMapper",
]
