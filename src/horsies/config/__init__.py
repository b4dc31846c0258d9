"""Settings of an app, its database, queues and recovery; a settings object is always valid."""

from horsies.config.app import AppConfig
from horsies.config.database import PostgresConfig
from horsies.config.exceptions import ExceptionMapper
from horsies.config.queues import CustomQueueConfig, QueueMode
from horsies.config.recovery import RecoveryConfig
from horsies.config.resilience import WorkerResilienceConfig

__all__ = [
    "AppConfig",
    "CustomQueueConfig",
    "ExceptionMapper",
    "PostgresConfig",
    "QueueMode",
    "RecoveryConfig",
    "WorkerResilienceConfig",
]
