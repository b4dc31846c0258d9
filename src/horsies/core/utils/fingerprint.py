"""Re-export: enqueue_fingerprint."""

from horsies.codec.fingerprint import (
    enqueue_fingerprint,
)

__all__ = [
    "enqueue_fingerprint",
]
