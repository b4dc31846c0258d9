"""Re-exports: what broker methods return."""

from horsies.broker.types import (
    BrokerErrorCode,
    BrokerOperationError,
    BrokerResult,
)

__all__ = [
    "BrokerErrorCode",
    "BrokerOperationError",
    "BrokerResult",
]
