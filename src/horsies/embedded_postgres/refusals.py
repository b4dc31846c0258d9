"""The error that the embedded server raises: a configuration error that says what to do."""

from horsies.codes import ErrorCode
from horsies.errors import ConfigurationError

URL_INSTEAD = "set HORSIES_DATABASE_URL to a PostgreSQL of your own"


def refusal(message: str, *notes: str, cure: str = URL_INSTEAD) -> ConfigurationError:
    return ConfigurationError(
        message, code=ErrorCode.BROKER_INVALID_URL, notes=list(notes), help_text=cure
    )
