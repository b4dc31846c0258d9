"""Find the app that a command line names.

A locator is `shop.queue:app`, `shop.queue`, `shop/queue.py:app` or `shop/queue.py`.
"""

import os
import sys
from pathlib import Path
from types import ModuleType

from horsies.app import Horsies
from horsies.codes import ErrorCode
from horsies.errors import (
    ConfigurationError,
    HorsiesError,
    MultipleValidationErrors,
    SourceLocation,
    ValidationReport,
    location_of,
)
from horsies.tasks.discovery import IMPORT_CURE, import_entry, is_path_entry, module_error
from horsies.tasks.mistakes import collected_mistakes, unique

_PROJECT_FILES = ("pyproject.toml", "setup.cfg", "setup.py")


def load_app(locator: str | None, *, keeps_mistakes: bool = False) -> Horsies:
    """Import the module and return its app; suppress sends during the import.

    With `keeps_mistakes` wrong task definitions are left to `app.check`, which shows all of them.
    """
    if not locator:
        raise _refusal(
            "no app module given", "name it, for example shop.queue:app or shop/queue.py"
        )
    entry, attribute = _split(locator)
    _add_working_directory()
    with collected_mistakes() as mistakes:
        try:
            module = _import(entry)
            app = _attribute(module, attribute, entry) if attribute else _only_app(module, entry)
        except MultipleValidationErrors as error:
            mistakes.extend(error.report.errors)
        except HorsiesError as error:
            mistakes.append(error)
        else:
            if not mistakes or keeps_mistakes:
                app.mistakes.extend(mistakes)
                return app
    raise joined(unique(mistakes))


def joined(errors: list[HorsiesError]) -> HorsiesError:
    """One error that shows all of them."""
    return ValidationReport("check", errors).to_error() or HorsiesError("no error was found")


def require_tasks(app: Horsies) -> None:
    """Refuse an app without any task: its worker would fail whatever others send to it."""
    if app.list_tasks():
        return
    modules = app.get_discovered_task_modules()
    named = f"discover_tasks names {', '.join(modules)}" if modules else "discover_tasks names none"
    raise ConfigurationError(
        "this app has no tasks",
        ErrorCode.TASK_NOT_REGISTERED,
        notes=[named],
        help_text='name the modules that define tasks: app.discover_tasks(["tasks"]);\n'
        "they must use this app, not another one",
    )


def _split(locator: str) -> tuple[str, str | None]:
    entry, colon, attribute = locator.rpartition(":")
    if not colon or os.sep in attribute:
        entry, attribute = locator, ""
    if (
        entry.endswith(".py")
        and not Path(entry).is_file()
        and os.sep not in entry
        and "/" not in entry
    ):
        dotted = entry.removesuffix(".py")
        if "." in dotted:
            path = dotted.replace(".", "/") + ".py"
            raise _refusal(
                f"{entry!r} is neither a file nor a module name",
                f"write the module as {dotted} or the file as {path}",
            )
    return entry, attribute or None


def _add_working_directory() -> None:
    here = Path.cwd()
    if any((here / name).is_file() for name in _PROJECT_FILES) and str(here) not in sys.path:
        sys.path.insert(0, str(here))


def _import(entry: str) -> ModuleType:
    before = os.environ.get("HORSIES_SUPPRESS_SENDS")
    os.environ["HORSIES_SUPPRESS_SENDS"] = "1"
    try:
        return import_entry(entry)
    except HorsiesError:
        raise
    except FileNotFoundError as error:
        if not is_path_entry(entry) or Path(entry).exists():
            raise module_error(entry, error) from error
        raise _refusal(
            f"file not found: {entry}", "check the path and the working directory"
        ) from None
    except ImportError as error:
        cure = f"{IMPORT_CURE}{_file_cure(entry, error)}{_colon_cure(entry)}"
        raise _refusal(f"cannot import {entry!r}: {error}", cure, location_of(error)) from error
    except (Exception, SystemExit) as error:  # user code: the module runs while it is imported
        raise module_error(entry, error) from error
    finally:
        if before is None:
            del os.environ["HORSIES_SUPPRESS_SENDS"]
        else:
            os.environ["HORSIES_SUPPRESS_SENDS"] = before


def _file_cure(entry: str, error: ImportError) -> str:
    """What helps when the module is a file right here, in a directory that is no project."""
    path = Path(f"{entry.replace('.', '/')}.py")
    is_unseen = error.name == entry.partition(".")[0] and path.is_file()
    return f";\nor name the file that is here: {path}" if is_unseen else ""


def _colon_cure(entry: str) -> str:
    """What helps when the app was written like a part of its module's name."""
    module, _, name = entry.rpartition(".")
    return f";\nif {name} is an app in {module}, write {module}:{name}" if module else ""


def _attribute(module: ModuleType, name: str, entry: str) -> Horsies:
    found = getattr(module, name, None)
    if isinstance(found, Horsies):
        return found
    what = "has no attribute" if found is None else "does not hold a Horsies app in"
    raise _refusal(f"{entry} {what} {name!r}", _choices(module))


def _only_app(module: ModuleType, entry: str) -> Horsies:
    apps = _apps(module)
    if len({id(app) for app in apps.values()}) == 1:
        return next(iter(apps.values()))
    if not apps:
        error = _refusal(f"{entry} defines no Horsies app", "add one: app = Horsies()")
        # Another module of that name may hide the file that was meant.
        raise error.with_note(f"it was loaded from {getattr(module, '__file__', 'nowhere')}")
    raise _refusal(f"{entry} defines several apps: {', '.join(apps)}", _choices(module))


def _choices(module: ModuleType) -> str:
    names = ", ".join(_apps(module))
    return f"choose one as module:name, from {names}" if names else "add one: app = Horsies()"


def _apps(module: ModuleType) -> dict[str, Horsies]:
    return {name: value for name, value in vars(module).items() if isinstance(value, Horsies)}


def _refusal(message: str, cure: str, location: SourceLocation | None = None) -> ConfigurationError:
    return ConfigurationError(message, ErrorCode.CLI_INVALID_ARGS, location, help_text=cure)
