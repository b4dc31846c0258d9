"""Values of rows that nobody expects, as Python reads them."""

from typing import Any

import pytest

from horsies.database.loading import fitted


@pytest.mark.parametrize(
    ("value", "declared", "shown"),
    [
        (["a", None, ["b"]], list[str], ["a"]),
        ([[1, 2], [3, 4]], list[int], []),
        ("a", list[str], []),
        (7, list[str] | None, None),
        (None, dict[str, int] | None, None),
        ({"a": 1, "b": "x", "c": None, "d": 10**30}, dict[str, int], {"a": 1}),
        ({"a": None}, dict[str, int | None], {"a": None}),
        ({"a": {"b": 1}, "c": {"b": []}, "d": 7}, dict[str, dict[str, int]], {"a": {"b": 1}}),
        ({"a": [1]}, dict[str, Any] | None, {"a": [1]}),
        ([1], dict[str, Any] | None, None),
    ],
)  # fmt: skip
def test_parts_that_are_not_of_their_types_are_left_out(
    value: object, declared: object, shown: object
) -> None:
    assert fitted(value, declared) == shown
