"""Text of others where people read it."""

import json

import pytest

from horsies.visible import harmless, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\u001b[2J"),
        ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
        ("\x9b1A", "\\u009b1A"),
        ("a\rb", "a\\u000db"),
        ("\u202etxt.exe", "\\u202etxt.exe"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("naïve 馬 \U0001f40e", "naïve 馬 \U0001f40e"),
    ],
)
def test_what_would_act_on_a_terminal_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_json_keeps_its_meaning() -> None:
    value = {"a": "\x1b\x7f\x9b\u202e\u2028"}

    assert json.loads(visible(json.dumps(value, ensure_ascii=False))) == value


def test_where_there_is_no_room_it_is_left_out() -> None:
    assert harmless("a\x1b[2J\u202eb") == "a[2Jb"
