"""Addresses of our pages, which ids and names of any kind are parts of."""

from starlette.convertors import Convertor, register_url_convertor

from horsies.drawing.path_parts import quoted, unquoted


def place(*parts: str) -> str:
    """The path of a page: `place("tasks", "2026/11/16")` is `/tasks/2026~2F11~2F16`."""
    return "".join(f"/{quoted(part)}" for part in parts)


class _NameConvertor(Convertor[str]):
    """A name in a route: `{task_id:horsies_name}`. It may hold slashes, which others write."""

    regex = "(?s:.+)"

    def convert(self, value: str) -> str:
        return unquoted(value)

    def to_string(self, value: str) -> str:
        return quoted(value)


register_url_convertor("horsies_name", _NameConvertor())
