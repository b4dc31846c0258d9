"""The pure parts of `horsies top`: charts, the `.env` file, and what a terminal says of itself."""

import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from horsies.cli.env_file import url_in
from horsies.tui.background import told_by
from horsies.tui.charts import Series, area, bar, columns

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("share", "drawn"),
    [
        (0.0, "    "),
        (0.001, "▏   "),
        (0.5, "██  "),
        (0.53, "██▏ "),
        (1.0, "████"),
        (7.0, "████"),
    ],
)
def test_a_bar_is_as_long_as_its_share(share: float, drawn: str) -> None:
    assert bar(share, 4) == drawn


def test_an_area_fills_whole_rows_first_and_shows_what_is_small() -> None:
    assert area([0.0, 0.01, 4.0, 6.0, 8.0, None], 2, 8.0) == ["   ▄█ ", " ▁███ "]


def test_points_fall_into_the_columns_of_their_time() -> None:
    points = [(NOW - timedelta(minutes=ago), float(ago)) for ago in (59, 58, 31, 30, 1)]
    series = Series("x", points, NOW, timedelta(hours=1))

    assert columns(series, 4) == [58.5, 31.0, 30.0, 1.0]


def test_a_wide_chart_joins_points_but_not_over_a_gap() -> None:
    points = [(NOW - timedelta(minutes=ago), 1.0) for ago in (10, 9, 8, 2, 1)]
    series = Series("x", points, NOW, timedelta(minutes=10))

    drawn = "".join("." if one is None else "x" for one in columns(series, 20))

    assert drawn == "xxxxxx" + "x" * (drawn.count("x") - 10) + "." * drawn.count(".") + "xxxx"
    assert drawn.count(".") >= 7


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("DATABASE_URL=postgresql://a/b\n", "postgresql://a/b"),
        ("# mine\nexport DATABASE_URL='postgresql://a/b' # there\n", "postgresql://a/b"),
        ('DATABASE_URL=x\nHORSIES_DATABASE_URL = "postgresql://a/b"', "postgresql://a/b"),
        ("DATABASE_URL=\nOTHER=1", None),
        ("DATABASE_URL=postgresql://a/b # mine", "postgresql://a/b"),
        ("DATABASE_URL=postgresql://u:a#c@h/b", "postgresql://u:a#c@h/b"),
        ("\ufeffDATABASE_URL=postgresql://a/b", "postgresql://a/b"),
    ],
    ids=["plain", "exported and quoted", "ours first", "empty", "comment", "hash", "BOM"],
)
def test_the_url_of_an_env_file_is_found(tmp_path: Path, text: str, url: str | None) -> None:
    (tmp_path / ".env").write_text(text)

    assert url_in(tmp_path / ".env") == url
    assert url_in(tmp_path / "none") is None


def test_an_env_file_in_another_encoding_is_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes("# für uns\nDATABASE_URL=postgresql://a/b\n".encode("latin-1"))

    assert url_in(tmp_path / ".env") == "postgresql://a/b"


@pytest.mark.parametrize(
    ("answer", "is_dark"),
    [
        (b"\x1b]11;rgb:1c1c/2121/2828\x1b\\\x1b[?62;22c", True),
        (b"\x1b]11;rgb:ff/ff/ff\x07\x1b[?1c", False),
        (b"\x1b[?1;2c", None),
    ],
    ids=["dark", "light", "does not say"],
)
def test_a_terminal_is_asked_for_its_background(answer: bytes, is_dark: bool | None) -> None:
    terminal, program = os.openpty()
    asked: list[bytes] = []

    def reply() -> None:
        asked.append(os.read(terminal, 100))
        os.write(terminal, answer)

    thread = threading.Thread(target=reply)
    thread.start()

    told = told_by(program, program)

    thread.join(10)
    os.close(terminal)
    os.close(program)
    assert told is is_dark
    assert asked == [b"\x1b]11;?\x1b\\\x1b[c"]
