"""Re-exports: Ok, Err and their kin."""

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
