"""django-simple-queue on horsies: replace its line in INSTALLED_APPS by this package's.

`install_alias()` at the top of the settings keeps `import django_simple_queue` working.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType

_OLD = "django_simple_queue"
_NEW = __name__


class _AliasLoader(importlib.abc.Loader):
    """Gives an old name the module of its new name: the same object, so that models stay one."""

    def __init__(self, new_name: str) -> None:
        self._new_name = new_name

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._new_name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has just replaced it


class _AliasFinder(importlib.abc.MetaPathFinder):
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _OLD and not fullname.startswith(f"{_OLD}."):
            return None
        new_name = _NEW + fullname.removeprefix(_OLD)
        if importlib.util.find_spec(new_name) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, _AliasLoader(new_name), is_package=True)


def install_alias() -> None:
    """Let `django_simple_queue` and its modules be imported from here, under their old names."""
    if any(isinstance(finder, _AliasFinder) for finder in sys.meta_path):
        return
    if importlib.util.find_spec(_OLD) is not None:
        raise RuntimeError(
            "django_simple_queue itself is installed; uninstall it before install_alias(), "
            "so that its name has one meaning"
        )
    # First: the path of our package would else answer for the old name, with second modules.
    sys.meta_path.insert(0, _AliasFinder())
