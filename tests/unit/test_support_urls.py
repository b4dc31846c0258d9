"""The test tools read any URL that libpq reads."""

import pytest

from support.urls import Place, changed


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://postgres:secret@db:5433/a", "postgresql://me@db:5433/b"),
        ("postgresql://postgres@db/a", "postgresql://me@db/b"),
        ("postgresql://postgres@/a?host=/run/x&port=1", "postgresql://me@/b?host=/run/x&port=1"),
        ("postgresql:///a?host=/run/x&user=postgres", "postgresql://me@/b?host=/run/x"),
        ("postgresql:///a", "postgresql://me@/b"),
        ("host=db dbname=a sslmode=disable", "postgresql://me@db/b?sslmode=disable"),
    ],
    ids=["tcp", "default port", "socket", "user as option", "no host", "not a URL"],
)
def test_user_and_database_are_changed_in_any_form(url: str, expected: str) -> None:
    assert changed(url, user="me", database="b") == expected


def test_place_is_changed_and_the_password_kept() -> None:
    url = "postgresql://me:a%2Fb@db:5433/a"

    assert changed(url, place=Place("/run/x", 1)) == "postgresql://me:a%2Fb@/a?host=/run/x&port=1"
