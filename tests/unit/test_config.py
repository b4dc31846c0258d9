"""Settings: defaults, ranges, rules between fields, and how violations are told."""

import importlib.util
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from horsies.codes import ErrorCode
from horsies.config import (
    AppConfig,
    CustomQueueConfig,
    PostgresConfig,
    QueueMode,
    RecoveryConfig,
    WorkerResilienceConfig,
)
from horsies.config.database import to_psycopg_url
from horsies.errors import ConfigurationError, HorsiesError, MultipleValidationErrors
from horsies.passwords import mask_error, mask_url
from horsies.states import TaskStatus

BROKER = PostgresConfig(database_url="postgresql://user:secret@localhost/horses")
QUEUES = [CustomQueueConfig(name="fast"), CustomQueueConfig(name="slow", priority=50)]


def refused(**fields: Any) -> HorsiesError:
    with pytest.raises(ValueError) as caught:
        AppConfig(broker=BROKER, **fields)
    assert isinstance(caught.value, HorsiesError)
    return caught.value


def test_app_defaults() -> None:
    config = AppConfig(broker=BROKER)

    assert config.queue_mode is QueueMode.DEFAULT
    assert config.custom_queues is None
    assert config.max_claim_renew_age_ms == 180_000
    assert config.effective_claim_lease_ms == 60_000
    assert config.default_unhandled_error_code == "UNHANDLED_EXCEPTION"
    assert (config.payload_warn_bytes, config.payload_max_bytes) == (1_048_576, None)
    assert config.task_log_max_bytes == 65_536


@pytest.mark.parametrize(
    ("fields", "code", "text"),
    [
        ({"custom_queues": QUEUES}, "HRS-200", "custom_queues must be None in DEFAULT mode"),
        ({"queue_mode": QueueMode.CUSTOM}, "HRS-200", "custom_queues required in CUSTOM mode"),
        (
            {"queue_mode": "custom", "custom_queues": []},
            "HRS-200",
            "custom_queues required in CUSTOM mode",
        ),
        (
            {"queue_mode": "custom", "custom_queues": [QUEUES[0], QUEUES[0]]},
            "HRS-200",
            "duplicate queue names in custom_queues",
        ),
        ({"cluster_wide_cap": 0}, "HRS-201", "cluster_wide_cap must be positive"),
        (
            {"cluster_wide_cap": 5, "prefetch_buffer": 1, "claim_lease_ms": 60_000},
            "HRS-201",
            "cluster_wide_cap incompatible with prefetch mode",
        ),
        ({"prefetch_buffer": -1}, "HRS-202", "prefetch_buffer must be non-negative"),
        (
            {"prefetch_buffer": 4},
            "HRS-202",
            "claim_lease_ms required when prefetch_buffer > 0",
        ),
        ({"claim_lease_ms": 0}, "HRS-202", "claim_lease_ms must be positive"),
        (
            {"claim_lease_ms": 0, "prefetch_buffer": 3},
            "HRS-202",
            "claim_lease_ms must be positive",
        ),
        (
            {"claim_lease_ms": 59_999},
            "HRS-202",
            "claim lease too short relative to claimer heartbeat",
        ),
        ({"max_claim_renew_age_ms": 0}, "HRS-202", "max_claim_renew_age_ms must be positive"),
        (
            {"max_claim_renew_age_ms": 59_999},
            "HRS-202",
            "max_claim_renew_age_ms must be >= effective claim lease",
        ),
        ({"exception_mapper": {KeyError: "KeyError"}}, "HRS-209", "Mapper value"),
        ({"exception_mapper": {KeyError: "no-code"}}, "HRS-209", "Mapper value"),
        ({"default_unhandled_error_code": "x"}, "HRS-209", "default_unhandled_error_code"),
        (
            {"default_unhandled_error_code": "OddException"},
            "HRS-209",
            "looks like an exception class name",
        ),
    ],
)
def test_each_rule_of_the_app_is_refused_by_itself(
    fields: dict[str, Any], code: str, text: str
) -> None:
    error = refused(**fields)

    assert isinstance(error, ConfigurationError)
    assert error.code == ErrorCode(code)
    assert text in error.message
    assert error.notes
    assert error.help_text


def test_all_violations_are_told_at_once() -> None:
    error = refused(custom_queues=QUEUES, cluster_wide_cap=-1, prefetch_buffer=-1)

    assert isinstance(error, MultipleValidationErrors)
    assert error.report.phase_name == "config"
    assert [str(e.code) for e in error.report.errors] == ["HRS-200", "HRS-201", "HRS-202"]


def test_the_place_of_a_violation_is_the_users_line() -> None:
    error = refused(cluster_wide_cap=0)

    assert error.location is not None
    assert error.location.file == __file__


def test_nested_settings_given_as_mappings_raise_their_own_error() -> None:
    error = refused(recovery={"running_stale_threshold_ms": 1_000})

    assert error.code == ErrorCode.CONFIG_INVALID_RECOVERY


def test_validating_a_mapping_raises_our_error_too() -> None:
    with pytest.raises(ConfigurationError, match="cluster_wide_cap must be positive"):
        AppConfig.model_validate({"broker": BROKER, "cluster_wide_cap": 0})


@pytest.mark.parametrize(
    "fields",
    [
        {"task_timeout_ms": 999},
        {"payload_max_bytes": 0},
        {"task_log_max_bytes": 1_023},
        {"no_such_setting": 1},
        {"task_timeout_ms": 999, "cluster_wide_cap": 0},
    ],
)
def test_ranges_and_names_of_fields_are_checked_first_by_pydantic(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AppConfig(broker=BROKER, **fields)


def test_a_mapper_key_must_be_an_exception_class() -> None:
    with pytest.raises(ValidationError, match="is_subclass_of"):
        AppConfig(broker=BROKER, exception_mapper={int: "X"})  # type: ignore[dict-item]


def test_the_app_configuration_is_immutable() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        AppConfig(broker=BROKER).cluster_wide_cap = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    "url",
    ["postgresql://h/d", "postgres://h/d", "postgresql+psycopg://h/d"],
)
def test_three_schemes_mean_postgresql(url: str) -> None:
    assert PostgresConfig(database_url=url, session_database_url=url).database_url == url


@pytest.mark.parametrize("url", ["mysql://h/d", "", "postgresql+asyncpg://h/d", "h/d"])
def test_other_urls_are_refused_without_showing_the_password(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        PostgresConfig(database_url=url)

    assert caught.value.code == ErrorCode.BROKER_INVALID_URL


def test_a_wrong_session_url_is_refused_as_well() -> None:
    with pytest.raises(MultipleValidationErrors):
        PostgresConfig(database_url="x://u:secret@h", session_database_url="y://u:secret@h")


def test_an_embedded_server_is_only_marked(tmp_path: Path) -> None:
    config = PostgresConfig.embedded(tmp_path)

    assert (config.is_embedded, config.embedded_directory, config.database_url) == (
        True,
        tmp_path,
        "",
    )


def test_the_schema_of_the_tables_can_be_named() -> None:
    config = PostgresConfig(database_url="postgresql://h/d", schema="jobs")

    assert config.schema == "jobs"
    assert PostgresConfig(database_url="postgresql://h/d").schema is None


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"HORSIES_DATABASE_URL": "postgresql://a/", "DATABASE_URL": "postgres://b/"}, "a"),
        ({"DATABASE_URL": "postgres://b/", "HORSIES_EMBEDDED": "1"}, "b"),
        ({"HORSIES_EMBEDDED": "1"}, "embedded"),
    ],
)
def test_without_a_broker_the_environment_decides(
    environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    broker = AppConfig().broker

    assert expected == "embedded" if broker.is_embedded else expected in broker.database_url


@pytest.mark.parametrize("installed", [True, False])
def test_an_installed_embedded_server_is_the_last_way(
    installed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HORSIES_EMBEDDED", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: object() if installed else None)

    if installed:
        assert AppConfig().broker.is_embedded
    else:
        with pytest.raises(ConfigurationError, match="HORSIES_DATABASE_URL"):
            AppConfig()


def test_no_database_at_all_names_both_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORSIES_EMBEDDED", "0")

    with pytest.raises(ConfigurationError) as caught:
        AppConfig()

    assert caught.value.code == ErrorCode.BROKER_INVALID_URL
    assert "HORSIES_DATABASE_URL" in (caught.value.help_text or "")
    assert "horsies[embedded]" in (caught.value.help_text or "")


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("postgresql://u:secret@h:5432/d", "postgresql://u:***@h:5432/d"),
        ("postgresql://u:se@c/ret@h/d", "postgresql://u:***@h/d"),
        ("postgresql://u@h/d", "postgresql://u@h/d"),
        (
            "postgresql://h/d?user=u&password=secret&port=1",
            "postgresql://h/d?user=u&password=***&port=1",
        ),
    ],
)
def test_passwords_are_masked(url: str, masked: str) -> None:
    assert mask_url(url) == masked
    assert "secret" not in repr(PostgresConfig(database_url=url))


@pytest.mark.parametrize(
    ("given", "masked"),
    [
        ("host=h password=secret dbname=d", "host=h password=*** dbname=d"),
        ("host=h PASSWORD = secret", "host=h PASSWORD = ***"),
        ("password='se cr\\'et' host=h", "password=*** host=h"),
        (r"password=se\ cret host=h", "password=*** host=h"),
        ("u:secret@h/d", "u:***@h/d"),
        ("postgresql:/u:secret@h/d", "postgresql:***@h/d"),
        ("jdbc:postgresql://h/d?password=secret", "jdbc:postgresql://h/d?password=***"),
        ("mysql://u:secret@h/d", "mysql://u:***@h/d"),
    ],
)
def test_what_is_no_url_is_refused_without_showing_its_password(given: str, masked: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a PostgreSQL URL") as caught:
        PostgresConfig(database_url=given)

    assert mask_url(given) == masked
    assert "cr" not in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: AppConfig(broker="postgresql://u:secret@h/d"),  # type: ignore[arg-type]  # on purpose
        lambda: PostgresConfig(database_url=["postgresql://u:secret@h/d"]),  # type: ignore[arg-type]  # on purpose
    ],
)
def test_settings_of_another_type_are_refused_without_being_repeated(
    make: Callable[[], object],
) -> None:
    with pytest.raises(ValidationError) as caught:
        make()

    assert "secret" not in str(caught.value)


def test_unescaped_at_is_not_taken_for_a_part_of_the_host() -> None:
    with pytest.raises(ConfigurationError, match="an unescaped one in its password") as caught:
        PostgresConfig(database_url="postgresql://u:a@secret@h/d")

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:se cret@h/d",
        "postgresql://u:sec%ret@h/d",
        "postgresql://u:secret@[::1/d",
        "postgresql://h/d?password=sec%zzret",
        "postgresql+psycopg://u:sec%ret@h/d",
    ],
)
def test_malformed_url_is_refused_without_showing_its_password(url: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read") as caught:
        PostgresConfig(database_url=url)

    shown = f"{caught.value} {caught.value.format_rust_style(use_colors=False)}"
    assert not re.search("sec|cret", shown)
    assert "percent-encoded" in shown


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("failed to resolve host 'ss@'", "failed to resolve host '***'"),
        ('invalid token: "p@ss@/word"', 'invalid token: "***"'),
        ("connection to p@ss@/word failed", "connection to *** failed"),
        ('database "d" does not exist', 'database "d" does not exist'),
    ],
)
def test_errors_lose_what_they_repeat_of_a_password(text: str, masked: str) -> None:
    assert mask_error(text, "postgresql://u:p@ss@/word@h/d") == masked


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql+psycopg://h/d", "postgresql://h/d"),
        ("postgresql://h/d", "postgresql://h/d"),
        ("anything", "anything"),
    ],
)
def test_psycopg_urls_lose_the_driver_part(url: str, expected: str) -> None:
    assert to_psycopg_url(url) == expected


@pytest.mark.seed("S151")
def test_recovery_defaults() -> None:
    assert RecoveryConfig().model_dump() == {
        "auto_requeue_stale_claimed": True,
        "claimed_stale_threshold_ms": 120_000,
        "auto_fail_stale_running": True,
        "running_stale_threshold_ms": 300_000,
        "check_interval_ms": 30_000,
        "runner_heartbeat_interval_ms": 30_000,
        "claimer_heartbeat_interval_ms": 30_000,
        "heartbeat_retention_hours": 24,
        "worker_state_retention_hours": 168,
        "terminal_record_retention_hours": 720,
        "retention_hours_by_status": {},
    }


@pytest.mark.seed("S152")
@pytest.mark.parametrize(
    ("state", "role"), [("running", "runner"), ("claimed", "claimer")], ids=["running", "claimed"]
)
def test_a_threshold_below_two_heartbeats_is_refused(state: str, role: str) -> None:
    fields = {f"{role}_heartbeat_interval_ms": 10_000}
    RecoveryConfig(**fields, **{f"{state}_stale_threshold_ms": 20_000})  # type: ignore[arg-type]

    with pytest.raises(ValueError) as caught:
        RecoveryConfig(**fields, **{f"{state}_stale_threshold_ms": 19_999})  # type: ignore[arg-type]

    error = caught.value
    assert isinstance(error, ConfigurationError)
    assert error.code == ErrorCode.CONFIG_INVALID_RECOVERY
    assert error.message == f"{state}_stale_threshold_ms too low"
    assert len(error.notes) == 3
    assert "threshold must be at least 2x heartbeat interval" in error.notes


def test_two_low_thresholds_are_told_together() -> None:
    with pytest.raises(MultipleValidationErrors) as caught:
        RecoveryConfig(running_stale_threshold_ms=1_000, claimed_stale_threshold_ms=1_000)

    assert caught.value.report.phase_name == "recovery"


@pytest.mark.seed("S156")
def test_thresholds_can_be_raised_against_false_alarms() -> None:
    config = RecoveryConfig(
        running_stale_threshold_ms=7_200_000, claimed_stale_threshold_ms=3_600_000
    )

    assert config.running_stale_threshold_ms == 2 * 3_600_000
    with pytest.raises(ValidationError):
        RecoveryConfig(running_stale_threshold_ms=7_200_001)


def test_retention_by_status_takes_terminal_states_by_member_or_text() -> None:
    config = RecoveryConfig(
        retention_hours_by_status={TaskStatus.FAILED: 5, "EXPIRED": None}  # type: ignore[dict-item]
    )

    assert config.retention_hours_by_status == {TaskStatus.FAILED: 5, TaskStatus.EXPIRED: None}


@pytest.mark.parametrize("key", [TaskStatus.PENDING, "RUNNING", "nonsense", 3])
def test_retention_by_status_refuses_other_keys(key: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        RecoveryConfig(retention_hours_by_status={key: 5})

    assert caught.value.code == ErrorCode.CONFIG_INVALID_RECOVERY


@pytest.mark.parametrize("hours", [0, 43_801])
def test_retention_by_status_checks_hours(hours: int) -> None:
    with pytest.raises(ValidationError):
        RecoveryConfig(retention_hours_by_status={TaskStatus.FAILED: hours})


def test_resilience_refuses_a_maximum_below_the_start() -> None:
    with pytest.raises(ConfigurationError) as caught:
        WorkerResilienceConfig(db_retry_initial_ms=5_000, db_retry_max_ms=500)

    error = caught.value
    assert error.code == ErrorCode.CONFIG_INVALID_RESILIENCE
    assert error.message == "db_retry_max_ms must be >= db_retry_initial_ms"
    assert error.notes == ["db_retry_initial_ms=5000ms", "db_retry_max_ms=500ms"]
    assert error.help_text == "increase db_retry_max_ms or reduce db_retry_initial_ms"


def test_resilience_is_mutable_and_takes_whole_numbers_only() -> None:
    config = WorkerResilienceConfig(notify_poll_interval_ms=2_000.0)  # type: ignore[arg-type]
    config.notify_poll_interval_ms = 3_000

    assert config.notify_poll_interval_ms == 3_000
    with pytest.raises(ValidationError):
        WorkerResilienceConfig(notify_poll_interval_ms=2_000.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields", [{"priority": 0}, {"priority": 101}, {"name": "q" * 101}, {"name": ""}]
)
def test_queue_ranges(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        CustomQueueConfig(**{"name": "q", **fields})


def test_the_configuration_is_logged_once_with_the_password_masked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = AppConfig(broker=BROKER, queue_mode=QueueMode.CUSTOM, custom_queues=QUEUES)

    with caplog.at_level(logging.INFO, logger="horsies"):
        config.log_config()

    (record,) = caplog.records
    assert record.name == "horsies"
    assert record.message.startswith("AppConfig:\n")
    assert "postgresql://user:***@localhost/horses" in record.message
    assert "fast (priority 1" in record.message
    assert "secret" not in record.message


def test_a_child_logs_no_configuration(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORSIES_CHILD_PROCESS", "1")

    with caplog.at_level(logging.INFO, logger="horsies"):
        AppConfig(broker=BROKER).log_config()

    assert not caplog.records
