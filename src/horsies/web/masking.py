"""What viewers see of arguments and results: secrets are masked by name and by annotation."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, TypeVar

from pydantic_core import to_jsonable_python

from horsies.codec.secrecy import MASK, masked
from horsies.tasks.definition import TaskDefinition

T = TypeVar("T")
_TEXT_LIMIT = 100_000


class Argument(NamedTuple):
    """One argument as it is shown: its name, its declared type if that is known, its JSON."""

    name: str
    type: str
    value: Any


@dataclass(frozen=True, slots=True)
class Masking:
    """Patterns of names that are hidden, such as `*password*`, and whether results are."""

    patterns: tuple[str, ...]
    hides_results: bool

    def arguments(
        self, definition: TaskDefinition | None, args: str | None, kwargs: str | None
    ) -> list[Argument]:
        """The stored arguments, by position and then by name."""
        positional, named = read_stored(args or "[]", list), read_stored(kwargs or "{}", dict)
        if positional is None or named is None:
            return [Argument("arguments", "", "(cannot be read)")]
        names = _parameters(definition)
        shown = [
            self._argument(definition, names[at] if at < len(names) else f"args[{at}]", value)
            for at, value in enumerate(positional)
        ]
        return [*shown, *(self._argument(definition, *item) for item in named.items())]

    def _argument(self, definition: TaskDefinition | None, name: str, value: Any) -> Argument:
        annotation = None if definition is None else definition.annotations.resolved.get(name)
        return Argument(name, _type_text(annotation), self.value(name, masked(value, annotation)))

    def value(self, name: str, value: Any) -> Any:
        """A value without what its name, or a name inside it, says to hide."""
        if any(fnmatchcase(name.lower(), pattern.lower()) for pattern in self.patterns):
            return MASK
        if isinstance(value, Mapping):
            return {str(key): self.value(str(key), one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.value("", one) if isinstance(one, dict) else one for one in value]
        return value

    def result(self, definition: TaskDefinition | None, value: object) -> Any:
        """What a task returned, as JSON."""
        if self.hides_results:
            return MASK
        shown = to_jsonable_python(value, fallback=repr, serialize_unknown=True)
        declared = None if definition is None else definition.ok_type
        return self.value("", masked(shown, declared))


def unmasked(edited: Any, stored: Any) -> Any:
    """Edited JSON in which what is still masked has its stored value again."""
    if edited == MASK:
        return stored
    if isinstance(edited, dict) and isinstance(stored, dict):
        return {name: unmasked(one, stored.get(name)) for name, one in edited.items()}
    if isinstance(edited, list) and isinstance(stored, list):
        return [
            unmasked(one, stored[at] if at < len(stored) else None) for at, one in enumerate(edited)
        ]
    return edited


def as_text(value: Any) -> str:
    """JSON for people; what is too long for a page is cut."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return text if len(text) <= _TEXT_LIMIT else f"{text[:_TEXT_LIMIT]}\n… cut"


def read_stored(text: str, kind: type[T]) -> T | None:
    """Stored JSON of this kind; None for anything else, which a row by plain SQL may hold."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, kind) else None


def _parameters(definition: TaskDefinition | None) -> Sequence[str]:
    return () if definition is None else list(definition.signature.signature.parameters)


def _type_text(annotation: object) -> str:
    if annotation is None:
        return ""
    name = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return name.replace("typing.", "")
