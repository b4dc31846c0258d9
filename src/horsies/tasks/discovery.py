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

# Shared with the locator: both import what a user has named.
IMPORT_CURE = (
    "the module must be importable from the working directory: run the command in the directory\n"
    "that holds it, beside a pyproject.toml, or put its directory on PYTHONPATH"
)
DEFAULT_EXCLUDES = ("*_test.py", "test_*.py", "conftest.py")

SYNTHETIC_PREFIX = "horsies_tasks_"

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


def refuse_text(modules: object) -> None:
    """Reject one name in place of a list: each of its letters would be taken for a module."""
    if isinstance(modules, str):
        raise ConfigurationError(
            "discover_tasks takes a list of modules, not a text",
            ErrorCode.CLI_INVALID_ARGS,
            notes=[f"found {modules!r}"],
            help_text=f'write app.discover_tasks(["{modules}"])',
        )


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
    except (Exception, SystemExit) as error:  # noqa: BLE001  # user code: module-level code
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


def module_error(entry: str, error: BaseException) -> ConfigurationError:
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
        help_text=IMPORT_CURE,
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
    """Load a file as the module it is: whoever imports it by name gets the same module.

    It is put under every name by which `sys.path` finds it, or else under a stable one of ours.
    """
    names = _names_of(path) or [_synthetic_name(path)]
    if (module := _loaded_module(path)) is not None:  # by its package, just now
        return module
    spec = importlib.util.spec_from_file_location(names[0], path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    with contextlib.ExitStack() as undo:
        for name in names:
            sys.modules[name] = module
            undo.callback(sys.modules.pop, name, None)
        spec.loader.exec_module(module)
        undo.pop_all()
    for name in names:
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own, module)
    return module


def _names_of(path: Path) -> list[str]:
    """The names by which the file can be imported, the one that others use first."""
    root, parts = path.parent, [path.stem]
    while (root / "__init__.py").is_file():
        parts.insert(0, root.name)
        root = root.parent
    is_in_package = len(parts) > 1
    relative = [] if is_in_package else [_relative_name(path, entry) for entry in sys.path]
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # inside a package: its modules must not hide others
    if path.stem == "__init__":
        parts.pop()
    names = dict.fromkeys([*filter(None, relative), ".".join(parts)])
    return [name for name in names if name not in sys.modules and _finds(name, path)]


def _relative_name(path: Path, entry: str) -> str | None:
    """The dotted name of a file below an entry of `sys.path`."""
    try:
        parts = path.relative_to(Path(entry).resolve()).with_suffix("").parts
    except (ValueError, OSError):
        return None
    return ".".join(parts) if all(part.isidentifier() for part in parts) else None


def _finds(name: str, path: Path) -> bool:
    """Whether an import of this name would load this file."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return False
    return spec is not None and spec.origin is not None and Path(spec.origin).resolve() == path


def _synthetic_name(path: Path) -> str:
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:12]
    return f"{SYNTHETIC_PREFIX}{path.stem}_{digest}"
