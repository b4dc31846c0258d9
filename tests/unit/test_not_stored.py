"""Which failed sends may be sent again: those whose reason passes."""

import psycopg
import pytest
from psycopg import errors

from horsies.sending.enqueuer import not_stored


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        (errors.DeadlockDetected(), True),
        (errors.SerializationFailure(), True),
        (errors.LockNotAvailable(), True),
        (errors.QueryCanceled(), True),
        (errors.ReadOnlySqlTransaction(), True),
        (errors.ProgramLimitExceeded("too many notifications in the NOTIFY queue"), True),
        (psycopg.OperationalError("server closed the connection unexpectedly"), True),
        (errors.CheckViolation(), False),
        (errors.InsufficientPrivilege(), False),
        (errors.ProgramLimitExceeded("index row size exceeds the maximum"), False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_reasons_that_pass_are_retryable(error: psycopg.Error, retryable: bool) -> None:
    assert not_stored(error).retryable is retryable
