"""Re-export: enqueue_fingerprint."""

from horsies.sending.fingerprint import (
    enqueue_fingerprint,
)

__all__ = [
    "enqueue_fingerprint",
]
