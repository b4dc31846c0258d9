"""Re-exports: startup errors."""

from horsies.codes import ErrorCode
from horsies.errors import (
    ConfigurationError,
    DuplicateTaskNameError,
    HorsiesError,
    MultipleValidationErrors,
    NotRegistered,
    RegistryError,
    SourceLocation,
    TaskDefinitionError,
    ValidationReport,
    WorkflowValidationError,
)

__all__ = [
    "ConfigurationError",
    "DuplicateTaskNameError",
    "ErrorCode",
    "HorsiesError",
    "MultipleValidationErrors",
    "NotRegistered",
    "RegistryError",
    "SourceLocation",
    "TaskDefinitionError",
    "ValidationReport",
    "WorkflowValidationError",
]
