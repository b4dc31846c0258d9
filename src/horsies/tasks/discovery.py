"""Expand and import task modules, given by dotted name, file or glob, and report failures."""

import contextlib
import glob
import hashlib
import importlib
import importlib.util
import logging
import os
import sys
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType

from horsies.codes import ErrorCode
from horsies.errors import (
    ConfigurationError,
    HorsiesError,
    MultipleValidationErrors,
    SourceLocation,
    location_of,
)

DEFAULT_EXCLUDES = ("*_test.py", "test_*.py", "conftest.py")

_logger = logging.getLogger("horsies.discovery")


def expand_module_globs(patterns: Iterable[str], exclude: Sequence[str] | None = None) -> list[str]:
    """Expand globs and paths to absolute files without duplicates; keep dotted names."""
    excluded = exclude or DEFAULT_EXCLUDES
    found: dict[str, None] = {}
    for pattern in patterns:
        if not (is_path_entry(pattern) or glob.has_magic(pattern)):
            found[pattern] = None
            continue
        for match in sorted(glob.glob(pattern, recursive=True)):  # noqa: PTH207  # takes any base and **
            path = Path(match).resolve()
            if path.suffix == ".py" and path.is_file() and not _is_excluded(path, excluded):
                found[str(path)] = None
    return list(found)


def is_path_entry(entry: str) -> bool:
    """Whether an entry is a file path rather than a dotted module name."""
    return entry.endswith(".py") or "/" in entry or os.sep in entry


def import_task_modules(entries: Iterable[str]) -> list[str]:
    """Import entries in order and return those imported; only warn about a missing file."""
    imported: list[str] = []
    for entry in entries:
        try:
            import_entry(entry)
        except FileNotFoundError:
            if not is_path_entry(entry) or Path(entry).exists():
                raise  # raised by the module itself
            _logger.warning("task module not found, skipped: %s", entry)
        else:
            imported.append(entry)
    return imported


def import_entry(entry: str) -> ModuleType:
    """Import exactly one module by file path or dotted name; errors propagate unchanged."""
    if not is_path_entry(entry):
        return importlib.import_module(entry)
    path = Path(entry).resolve()
    if not path.is_file():
        raise FileNotFoundError(entry)
    return _loaded_module(path) or _load_file(path)


def import_problems(entry: str) -> list[HorsiesError]:
    """Import an entry and return its errors, as `check` reports them."""
    if is_path_entry(entry) and not Path(entry).is_file():
        return [_import_error(f"task module not found: {entry}", entry)]
    try:
        import_entry(entry)
    except MultipleValidationErrors as error:
        return list(error.report.errors)
    except HorsiesError as error:
        return [error]
    except ImportError as error:
        place = location_of(error)
        return [_import_error(f"failed to import module: {entry}", f"{error}", place)]
    except Exception as error:  # noqa: BLE001  # user code: module-level code
        return [module_error(entry, error)]
    return []


def loaded_modules(entry: str) -> list[ModuleType]:
    """Return what an entry has imported: its module, and the loaded sub-modules of a package."""
    if is_path_entry(entry):
        module = _loaded_module(Path(entry).resolve())
        return [] if module is None else [module]
    return [
        module
        for name, module in list(sys.modules.items())
        if name == entry or name.startswith(f"{entry}.")
    ]


def module_error(entry: str, error: Exception) -> ConfigurationError:
    """Build the error for a module whose own code raised."""
    return ConfigurationError(
        f"error while importing module: {entry}",
        ErrorCode.MODULE_EXEC_ERROR,
        location_of(error),
        notes=[f"{type(error).__name__}: {error}"],
        help_text="module-level code must run without errors: fix it there,\n"
        "or move what may fail into a function",
    )


def _import_error(
    message: str, note: str, location: SourceLocation | None = None
) -> ConfigurationError:
    return ConfigurationError(
        message,
        ErrorCode.CLI_INVALID_ARGS,
        location,
        notes=[note],
        help_text="check the name, the working directory and PYTHONPATH",
    )


def _is_excluded(path: Path, patterns: Sequence[str]) -> bool:
    return any(fnmatch(path.name, pattern) or fnmatch(str(path), pattern) for pattern in patterns)


def _loaded_module(path: Path) -> ModuleType | None:
    """Find the file among loaded modules: loading it again would duplicate its classes."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and Path(file).name == path.name and Path(file).resolve() == path:
            return module
    return None


def _load_file(path: Path) -> ModuleType:
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:12]
    name = f"horsies_tasks_{path.stem}_{digest}"
    directory = str(path.parent)
    if directory not in sys.path:
        sys.path.insert(0, directory)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with contextlib.ExitStack() as undo:
        undo.callback(sys.modules.pop, name, None)
        spec.loader.exec_module(module)
        undo.pop_all()
    return module
