"""How we connect: what the URL says is kept, and ours is added where it says nothing."""

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from horsies import TaskError, TaskResult
from horsies.database.connection import Address
from support.apps import good, make_app

FORMS = ["url", "key=value", "several hosts"]


def written(url: str, form: str, **parameters: str) -> str:
    """The same place with more parameters, written as a URL or as keys and values."""
    if form == "key=value":
        return make_conninfo(url, **parameters)
    more = "&".join(f"{key}={value}" for key, value in parameters.items())
    longer = f"{url}{'&' if '?' in url else '?'}{more}"
    if form == "url":
        return longer
    place = conninfo_to_dict(url)
    host, port = place["host"], place.get("port", 5432)
    return make_conninfo(longer, host=f"/nowhere,{host}", port=f"{port},{port}")


def setting(connection: psycopg.Connection[psycopg.rows.TupleRow], name: str) -> str:
    row = connection.execute("select current_setting(%s)", [name]).fetchone()
    assert row is not None
    return str(row[0])


@pytest.mark.parametrize("is_pooled", [False, True], ids=["direct", "pooled"])
@pytest.mark.parametrize("form", FORMS)
def test_parameters_of_the_url_are_kept(database_url: str, form: str, is_pooled: bool) -> None:
    blank = " " if form == "key=value" else "%20"
    equals = "=" if form == "key=value" else "%3D"
    options = f"-c{blank}search_path{equals}pg_catalog,public{blank}-c{blank}work_mem{equals}5MB"
    url = written(
        database_url, form, options=options, application_name="shop", connect_timeout="7",
        keepalives_idle="99",
    )  # fmt: skip

    with Address(url, is_pooled=is_pooled).connect("horsies claim") as connection:
        found = connection.info.get_parameters()

        assert setting(connection, "search_path") == "pg_catalog,public"
        assert setting(connection, "work_mem") == "5MB"
        assert setting(connection, "application_name") == "shop"
        assert (found["connect_timeout"], found["keepalives_idle"]) == ("7", "99")
        assert found["keepalives_interval"] == "5"  # ours, where the URL says nothing


@pytest.mark.parametrize("form", FORMS)
def test_our_settings_are_added_where_the_url_has_none(database_url: str, form: str) -> None:
    options = "-cwork_mem=5MB" if form == "key=value" else "-cwork_mem%3D5MB"
    url = written(database_url, form, options=options)

    with Address(url).limited(20, 10).connect("horsies claim") as connection:
        found = connection.info.get_parameters()

        assert setting(connection, "work_mem") == "5MB"
        assert setting(connection, "statement_timeout") == "20s"
        assert setting(connection, "jit") == "off"
        assert setting(connection, "application_name") == "horsies claim"
        assert found["connect_timeout"] == "10"


def test_the_urls_own_limits_outrank_ours(database_url: str) -> None:
    url = written(database_url, "key=value", options="-c statement_timeout=3s -c jit=on")

    with Address(url).limited(20, 10).connect() as connection:
        assert setting(connection, "statement_timeout") == "3s"
        assert setting(connection, "jit") == "on"


def test_the_configured_schema_outranks_the_urls_search_path(database_url: str) -> None:
    url = written(database_url, "key=value", options="-c search_path=elsewhere")

    with Address(url, 'our "own"').connect() as connection:
        assert setting(connection, "search_path") == '"our ""own"""'


def test_words_that_are_no_settings_reach_the_proxy_that_wants_them(database_url: str) -> None:
    """Neon finds its endpoint in them; a server of PostgreSQL's own refuses them."""
    url = written(database_url, "url", options="endpoint%3Dep-cool-sea-1")

    with pytest.raises(psycopg.OperationalError, match="endpoint=ep-cool-sea-1"):
        Address(url).connect()


def test_texts_are_sent_as_utf8_whatever_the_url_says(database_url: str) -> None:
    with Address(written(database_url, "url", client_encoding="LATIN1")).connect() as connection:
        assert connection.info.encoding == "utf-8"


def test_a_schema_named_in_the_url_holds_the_tables(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url) as connection:
        connection.execute("create schema jobs")
    app = make_app(written(empty_database_url, "url", options="-csearch_path%3Djobs"))

    @app.task("noop")
    def noop() -> TaskResult[None, TaskError]:
        return TaskResult(ok=None)

    good(noop.send())

    with psycopg.connect(empty_database_url) as connection:
        assert connection.execute("select count(*) from jobs.horsies_tasks").fetchone() == (1,)
    app.get_broker().close()
