"""Settings from arguments, environment and pyproject.toml, in that order."""

from pathlib import Path
from typing import Any

import pytest

from horsies import AppConfig, ConfigurationError, Horsies, PostgresConfig
from horsies.config.sources import described

URL = "postgresql://me:secret@127.0.0.1:1/shop"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(project: Path, table: str) -> None:
    (project / "pyproject.toml").write_text(f"[tool.horsies]\n{table}\n")


def test_a_url_and_settings_are_enough(project: Path) -> None:
    app = Horsies(URL, allow_plain_returns=True)

    assert app.config.broker.database_url == URL
    assert app.config.allow_plain_returns
    assert Horsies(database_url=URL).config.broker.database_url == URL


def test_the_first_source_wins(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = "cluster_wide_cap = 1\ntask_timeout_ms = 1000\npayload_warn_bytes = 10\n"
    write(
        project, f"database_url = '{URL}'\n{table}[tool.horsies.recovery]\ncheck_interval_ms = 2000"
    )
    monkeypatch.setenv("HORSIES_CLUSTER_WIDE_CAP", "2")
    monkeypatch.setenv("HORSIES_TASK_TIMEOUT_MS", "2000")
    monkeypatch.setenv("HORSIES_RESILIENCE__DB_RETRY_MAX_ATTEMPTS", "7")

    app = Horsies(cluster_wide_cap=3)

    config = app.config
    assert (config.cluster_wide_cap, config.task_timeout_ms, config.payload_warn_bytes) == (
        3, 2000, 10,
    )  # fmt: skip
    assert config.recovery.check_interval_ms == 2000
    assert config.resilience.db_retry_max_attempts == 7
    shown = {name: (value, source) for name, value, source in described(config, app.config_sources)}
    assert shown["cluster_wide_cap"] == ("3", "argument")
    assert shown["task_timeout_ms"] == ("2000", "HORSIES_TASK_TIMEOUT_MS")
    assert shown["payload_warn_bytes"] == ("10", str(project / "pyproject.toml"))
    assert shown["recovery.check_interval_ms"] == ("2000", str(project / "pyproject.toml"))
    assert shown["prefetch_buffer"] == ("None", "default")
    assert "secret" not in str(shown)
    assert shown["broker.database_url"][0] == "postgresql://me:***@127.0.0.1:1/shop"


def test_the_schema_is_read_and_shown_by_its_own_name(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORSIES_BROKER__SCHEMA", "jobs")

    app = Horsies(URL)

    shown = {name: rest for name, *rest in described(app.config, app.config_sources)}
    assert app.config.broker.schema == "jobs"
    assert shown["broker.schema"] == ["jobs", "HORSIES_BROKER__SCHEMA"]


def test_the_environment_goes_before_the_project(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, "database_url = 'postgresql://project/shop'")
    monkeypatch.setenv("DATABASE_URL", URL)

    assert Horsies().config.broker.database_url == URL


def test_lists_come_as_json_and_none_is_no_value(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORSIES_QUEUE_MODE", "custom")
    monkeypatch.setenv("HORSIES_CUSTOM_QUEUES", '[{"name": "mail"}]')
    monkeypatch.setenv("HORSIES_PAYLOAD_WARN_BYTES", "none")

    config = Horsies(URL).config

    assert [queue.name for queue in config.custom_queues or ()] == ["mail"]
    assert config.payload_warn_bytes is None


def test_a_given_config_is_complete(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORSIES_CLUSTER_WIDE_CAP", "2")
    config = AppConfig(broker=PostgresConfig(database_url=URL))

    assert Horsies(config).config is config
    assert Horsies(config, task_timeout_ms=5000).config.task_timeout_ms == 5000
    assert Horsies(config, task_timeout_ms=5000).config.cluster_wide_cap is None


def test_a_wrong_value_names_its_source(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORSIES_TASK_TIMEOUT_MS", "soon")

    with pytest.raises(ConfigurationError, match="from HORSIES_TASK_TIMEOUT_MS"):
        Horsies(URL)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"task_timeout_ms": "soon"}, "task_timeout_ms: Input should be a valid integer"),
        ({"speed": 3}, "speed: there is no such setting (from argument)"),
        ({"recovery": {"speed": 3}}, "recovery.speed: there is no such setting"),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "given", [URL, AppConfig(broker=PostgresConfig(database_url=URL))], ids=["url", "config"]
)
def test_a_wrong_argument_gets_one_error_of_ours(
    project: Path, given: Any, settings: Any, said: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Horsies(given, **settings)

    (note,) = caught.value.notes
    assert note.startswith(said)
    assert caught.value.help_text


@pytest.mark.parametrize(
    ("table", "said"),
    [("speed = 3", "has no setting 'speed'"), ("speed = ", "pyproject.toml cannot be read")],
)
def test_a_wrong_project_file_is_refused(project: Path, table: str, said: str) -> None:
    write(project, table)

    with pytest.raises(ConfigurationError, match=said):
        Horsies(URL)


def test_something_else_is_refused(project: Path) -> None:
    with pytest.raises(ConfigurationError, match="takes a database URL or an AppConfig"):
        Horsies(5)  # type: ignore[arg-type]
