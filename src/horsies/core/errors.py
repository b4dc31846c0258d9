"""Re-exports: startup errors."""

from horsies.errors import (
    ConfigurationError,
    DuplicateTaskNameError,
    ErrorCode,
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
