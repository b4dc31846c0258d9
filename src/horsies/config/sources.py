"""Where the settings of an app come from: arguments, environment, pyproject.toml, defaults.

The first that names a setting wins. An `AppConfig` given as such is complete and used as it is.
"""

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from horsies.codes import ErrorCode
from horsies.config.app import AppConfig
from horsies.config.database import PostgresConfig
from horsies.errors import ConfigurationError
from horsies.passwords import mask_url

_NESTED: dict[str, type[BaseModel]] = {
    name: annotation
    for name, info in AppConfig.model_fields.items()
    if name != "schedule"
    and isinstance(annotation := info.annotation, type)
    and issubclass(annotation, BaseModel)
}
_PLAIN = [name for name in AppConfig.model_fields if name not in {*_NESTED, "schedule"}]
_URLS = ("HORSIES_DATABASE_URL", "DATABASE_URL")


@dataclass(slots=True)
class Found:
    """Settings by name, nested ones in mappings, and the source of each by its dotted name."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    sources: dict[str, str] = field(default_factory=dict[str, str])

    def put(self, name: str, value: object, source: str) -> None:
        """Set a value, unless a source that goes before has set it."""
        if name in self.sources:
            return
        self.sources[name] = source
        section, _, inner = name.partition(".")
        if inner:
            self.values.setdefault(section, {})[inner] = value
        else:
            self.values[name] = value


def make_config(
    given: AppConfig | str | None, settings: Mapping[str, Any]
) -> tuple[AppConfig, dict[str, str]]:
    """The configuration of an app, and where each setting that is not a default comes from."""
    if isinstance(given, AppConfig):
        named = {name: getattr(given, name) for name in given.model_fields_set}
        found = Found({**named, **settings}, dict.fromkeys({*named, *settings}, "argument"))
        return _built(found) if settings else given, found.sources
    found = Found()
    for name, value in settings.items():
        found.put("broker.database_url" if name == "database_url" else name, value, "argument")
    if isinstance(given, str):
        found.put("broker.database_url", given, "argument")
    elif given is not None:
        raise ConfigurationError(
            "Horsies takes a database URL or an AppConfig",
            ErrorCode.BROKER_INVALID_URL,
            notes=[f"found {type(given).__name__}"],
            help_text='Horsies("postgresql://user@host/database"), or Horsies(AppConfig(...))',
        )
    _read_environment(found)
    _read_project(found)
    return _built(found), found.sources


def _built(found: Found) -> AppConfig:
    values = dict(found.values)
    try:
        if isinstance(broker := values.get("broker"), dict):
            values["broker"] = _broker(broker)
        return AppConfig(**values)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False)
        raise ConfigurationError(
            "a setting has a value or a name that it cannot have",
            ErrorCode.CLI_INVALID_ARGS,
            notes=[_told(one, _source(found, one["loc"])) for one in problems],
            help_text="docs/reference/configuration.md lists the settings and their ranges",
        ) from None


def _told(problem: ErrorDetails, source: str) -> str:
    is_unknown = problem["type"] == "extra_forbidden"
    said = "there is no such setting" if is_unknown else problem["msg"]
    return f"{'.'.join(map(str, problem['loc']))}: {said} (from {source})"


def _broker(fields: dict[str, Any]) -> PostgresConfig:
    if "database_url" in fields:
        return PostgresConfig(**fields)
    return PostgresConfig.model_validate(
        {**PostgresConfig.from_environment().model_dump(by_alias=True), **fields}
    )


def _source(found: Found, place: tuple[int | str, ...]) -> str:
    names = [".".join(map(str, place[:length])) for length in (2, 1)]
    return next((found.sources[name] for name in names if name in found.sources), "argument")


def _read_environment(found: Found) -> None:
    """`HORSIES_TASK_TIMEOUT_MS=5000`, `HORSIES_RECOVERY__CHECK_INTERVAL_MS=1000`."""
    if "broker" not in found.sources:
        for variable in _URLS:
            if url := os.environ.get(variable):
                found.put("broker.database_url", url, variable)
    for name in _PLAIN:
        variable = f"HORSIES_{name.upper()}"
        if variable in os.environ:
            found.put(name, _parsed(os.environ[variable]), variable)
    for section, model in _NESTED.items():
        for name in _public_names(model).values():
            variable = f"HORSIES_{section.upper()}__{name.upper()}"
            if variable in os.environ and section not in found.sources:
                found.put(f"{section}.{name}", _parsed(os.environ[variable]), variable)


def _parsed(text: str) -> object:
    """Lists and mappings are JSON; `none` is no value; pydantic reads numbers and truth values."""
    if text.lower() == "none":
        return None
    if text[:1] in {"[", "{"}:
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _read_project(found: Found) -> None:
    """The table `[tool.horsies]` of the nearest pyproject.toml, from the working directory up."""
    path = next(
        (
            candidate
            for directory in (Path.cwd(), *Path.cwd().parents)
            if (candidate := directory / "pyproject.toml").is_file()
        ),
        None,
    )
    if path is None:
        return
    table = _table(path)
    for name, value in table.items():
        if name == "database_url":
            if "broker" not in found.sources:
                found.put("broker.database_url", value, str(path))
        elif name in _NESTED and isinstance(value, dict):
            if name not in found.sources:
                for inner, setting in value.items():
                    found.put(f"{name}.{inner}", setting, str(path))
        elif name in _PLAIN and name != "exception_mapper":
            found.put(name, value, str(path))
        else:
            raise ConfigurationError(
                f"[tool.horsies] has no setting {name!r}",
                ErrorCode.CLI_INVALID_ARGS,
                notes=[f"in {path}"],
                help_text=f"settings: database_url, {', '.join([*_PLAIN, *_NESTED])}",
            )


def _table(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    if "tool.horsies" not in text:
        return {}
    try:
        tool: dict[str, Any] = tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(
            f"pyproject.toml cannot be read: {error}",
            ErrorCode.CLI_INVALID_ARGS,
            notes=[f"in {path}"],
            help_text="correct the file; horsies reads its table [tool.horsies]",
        ) from None
    return dict(tool.get("horsies", {}))


def described(config: AppConfig, sources: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Name, value and source of every setting; passwords are masked."""
    for name in AppConfig.model_fields:
        value = getattr(config, name)
        if name not in _NESTED:
            yield name, _shown(value), sources.get(name, "default")
            continue
        for attribute, inner in _public_names(type(value)).items():
            source = sources.get(f"{name}.{inner}", sources.get(name, "default"))
            yield f"{name}.{inner}", _shown(getattr(value, attribute)), source


def _public_names(model: type[BaseModel]) -> dict[str, str]:
    """The name by which users know each field of a model: its alias, where it has one."""
    return {name: info.alias or name for name, info in model.model_fields.items()}


def _shown(value: object) -> str:
    if isinstance(value, str):
        return mask_url(value)
    return str(getattr(value, "value", value))
