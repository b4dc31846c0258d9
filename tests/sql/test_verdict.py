"""horsies_verdict and database/verdict.py: one list of what an error is worth."""

import psycopg
import pytest
from psycopg import errors

from horsies.database.verdict import Verdict, is_connection_failure, judge_error, judge_state
from support.database import Database

STATES = sorted(
    {
        error.sqlstate
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, psycopg.Error) and error.sqlstate
    }
)
MESSAGES = (
    "",
    "cached plan must not change result type",
    "too many notifications in the NOTIFY queue",
    "cache lookup failed for function 12345",
)


@pytest.mark.parametrize("message", MESSAGES, ids=["plain", "plan", "notify", "function"])
def test_sql_and_python_judge_every_error_alike(db: Database, message: str) -> None:
    rows = db.execute(
        "select s, horsies_verdict(s, %s) as verdict from unnest(%s::text[]) s", message, STATES
    )

    judged = {row["s"]: row["verdict"] for row in rows}
    assert judged == {state: judge_state(state, message).value for state in STATES}


@pytest.mark.parametrize(
    "state",
    ["08P01", "08006", "53200", "53400", "58030", "25P03", "25P04", "40001", "55P03", "57014"],
)
def test_faults_of_the_server_are_worth_a_retry(state: str) -> None:
    assert judge_error(errors.lookup(state)("the server said so")) is Verdict.RETRY


@pytest.mark.parametrize("state", ["21000", "22003", "22P05", "23514", "54001"])
def test_faults_of_a_row_are_its_own(state: str) -> None:
    assert judge_error(errors.lookup(state)("a value")) is Verdict.ROW


def test_text_that_cannot_be_encoded_is_a_fault_of_its_row(db: Database) -> None:
    for value in ("a\x00b", "a\ud800b"):
        with pytest.raises((psycopg.DataError, UnicodeError)) as caught:
            db.execute("select %s", value)
        assert judge_error(caught.value) is Verdict.ROW


def test_anything_else_is_a_bug() -> None:
    assert judge_error(errors.UndefinedFunction("no such function")) is Verdict.BUG
    assert judge_error(KeyError("x")) is Verdict.BUG


@pytest.mark.parametrize(
    ("state", "is_unreachable"),
    [("08P01", True), ("57P01", True), ("25006", True), ("53200", False)],
)
def test_only_some_faults_of_the_server_mean_that_it_is_away(
    state: str, is_unreachable: bool
) -> None:
    assert is_connection_failure(errors.lookup(state)("")) is is_unreachable
