"""Re-exports: what broker methods return."""

from horsies.codes import (
    BrokerErrorCode,
)
from horsies.result.broker import (
    BrokerOperationError,
    BrokerResult,
)

__all__ = [
    "BrokerErrorCode",
    "BrokerOperationError",
    "BrokerResult",
]
