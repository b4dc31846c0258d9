"""Re-exports: Ok, Err and related names."""

from horsies.result import (
    Err,
    Ok,
    Result,
    UnwrapError,
    is_err,
    is_ok,
)

__all__ = [
    "Err",
    "Ok",
    "Result",
    "UnwrapError",
    "is_err",
    "is_ok",
]
