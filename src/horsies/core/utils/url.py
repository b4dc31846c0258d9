"""Re-export: to_psycopg_url."""

from horsies.config.database import (
    to_psycopg_url,
)

__all__ = [
    "to_psycopg_url",
]
