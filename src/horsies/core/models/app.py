"""Re-export: AppConfig."""

from horsies.config import (
    AppConfig,
)

__all__ = [
    "AppConfig",
]
