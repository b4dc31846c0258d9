"""Arguments of a function: bound, checked, written, read back."""

import datetime as dt
import threading
from typing import Any, get_type_hints

import pytest

from horsies.codec.signature import ArgumentsError, EncodedArguments, SignatureCodec
from horsies.result import Err, Ok, TaskError, TaskResult
from support.codec_models import Horse, Point, RaceHorse, StrictEvent

MOMENT = dt.datetime(2024, 2, 3, tzinfo=dt.UTC)


def codec(function: Any) -> SignatureCodec:
    return SignatureCodec(function, get_type_hints(function, include_extras=True))


def feed(horse: Horse, amount: int, /, at: dt.datetime, *, note: Any = None) -> None: ...


def anything(first, *rest: int, flag: bool = False, **extra: dt.date) -> None:  # type: ignore[no-untyped-def]
    ...


def locked(lock: threading.Lock, n: int) -> None: ...


def events(event: StrictEvent, box: Any) -> None: ...


def results(done: TaskResult[int, TaskError]) -> None: ...


@pytest.mark.parametrize(
    ("function", "args", "kwargs"),
    [
        (feed, (Horse(name="a", age=1), 2, MOMENT), {}),
        (feed, (RaceHorse(name="a", age=1, wins=3), 2), {"at": MOMENT}),
        (feed, (Horse(name="a", age=1), 2), {"at": MOMENT, "note": {"on": [MOMENT]}}),
        (anything, ("x",), {}),
        (anything, ({"k": MOMENT}, 1, 2), {"flag": True, "from_": MOMENT.date()}),
        (anything, (1,), {"rest": MOMENT.date()}),
        (events, (), {"event": StrictEvent(at=MOMENT), "box": MOMENT}),
        (events, (), {"event": StrictEvent(at=MOMENT), "box": None}),
        (results, (TaskResult(ok=3),), {}),
        (results, (), {"done": TaskResult(ok="not even an int")}),
    ],
)
def test_arguments_arrive_as_they_were_sent(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    encoded = codec(function).encode(args, kwargs).unwrap()

    read_args, read_kwargs = codec(function).decode(encoded.args_json, encoded.kwargs_json).unwrap()

    assert (read_args, read_kwargs) == (args, kwargs)
    assert [type(a) for a in read_args] == [type(a) for a in args]


def test_texts_are_plain_compact_json_and_absent_when_empty() -> None:
    def f(a: int = 0, *, at: dt.date | None = None, t: tuple[int, ...] = ()) -> None: ...

    assert codec(f).encode((), {}) == Ok(EncodedArguments(None, None))
    assert codec(f).encode((1,), {"at": dt.date(2024, 1, 2), "t": (1, 2)}) == Ok(
        EncodedArguments("[1]", '{"at":"2024-01-02","t":[1,2]}')
    )


def test_values_that_fit_by_coercion_are_stored_coerced() -> None:
    def f(n: int, at: dt.date, horse: Horse, ids: set[int]) -> None: ...

    encoded = codec(f).encode(
        (), {"n": "5", "at": "2024-01-02", "horse": {"name": "a", "age": "1"}, "ids": [1]}
    )

    assert encoded == Ok(
        EncodedArguments(None, '{"n":5,"at":"2024-01-02","horse":{"name":"a","age":1},"ids":[1]}')
    )


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((), {}, "horse"),
        ((Horse(name="a", age=1), 1), {}, "'at'"),
        ((Horse(name="a", age=1), 1, MOMENT), {"at": MOMENT}, "multiple values"),
        ((Horse(name="a", age=1), 1, MOMENT, 4), {}, "too many positional"),
        ((Horse(name="a", age=1), 1, MOMENT), {"other": 1}, "'other'"),
        ((Horse(name="a", age=1), "x", MOMENT), {}, "parameter 'amount'"),
        ((Horse(name="a", age=1), 1), {"at": "soon"}, "parameter 'at'"),
        ((Horse(name="a", age=1), 1), {"at": MOMENT, "note": object()}, "parameter 'note'"),
        ((Horse(name="a", age=1), 1), {"at": MOMENT, "horse": 1}, "horse"),
        ((object(), 1, MOMENT), {}, "parameter 'horse'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_naming_the_parameter(
    args: tuple[Any, ...], kwargs: dict[str, Any], text: str
) -> None:
    result = codec(feed).encode(args, kwargs)

    assert isinstance(result, Err)
    assert isinstance(result.err_value, ArgumentsError)
    assert text in str(result.err_value)


def test_variable_arguments_are_checked_by_their_own_annotations() -> None:
    assert "parameter 'rest'" in str(codec(anything).encode((1, "x"), {}).unwrap_err())
    assert "parameter 'later'" in str(codec(anything).encode((1,), {"later": "never"}).unwrap_err())


@pytest.mark.parametrize(
    ("args_json", "kwargs_json", "text"),
    [
        ("{}", None, "not a JSON array"),
        ("[", None, "not JSON"),
        (None, "[]", "not a JSON object"),
        (None, "{", "not JSON"),
        ('[{"name":"a","age":1},1,"2024-01-01",4]', None, "too many"),
        ('[{"name":"a","age":1},"x"]', '{"at":"2024-01-01"}', "parameter 'amount'"),
        ('[{"name":"a","age":1},1]', '{"at":"soon"}', "parameter 'at'"),
        ('[{"name":"a","age":1},1]', '{"at":"2024-01-01","__horsies_x":1}', "__horsies_x"),
        ('[{"name":"a","age":1},1]', "{}", "'at'"),
        ('[{"__pydantic_model__":true,"module":"os","qualname":"x","data":{}},1]', "{}", "unknown"),
    ],
)
def test_stored_arguments_that_do_not_fit_are_refused(
    args_json: str | None, kwargs_json: str | None, text: str
) -> None:
    result = codec(feed).decode(args_json, kwargs_json)

    assert isinstance(result, Err)
    assert text in str(result.err_value)


def test_unknown_fields_inside_an_argument_are_none_of_the_signatures_business() -> None:
    def f(point: Point) -> None: ...

    stored = '{"point":{"x":1,"y":2,"old":3}}'

    assert codec(f).decode(None, stored) == Ok(((), {"point": Point(1, 2)}))


def test_nan_in_an_argument_is_refused() -> None:
    def f(weight: float) -> None: ...

    assert "NaN" in str(codec(f).encode((), {"weight": float("nan")}).unwrap_err())
    assert "NaN" in str(codec(f).encode((float("nan"),), {}).unwrap_err())


def test_an_annotation_pydantic_cannot_handle_is_skipped() -> None:
    assert codec(locked).encode((), {"lock": 3, "n": 4}).unwrap().kwargs_json == '{"lock":3,"n":4}'
    assert codec(locked).encode((3, 4), {}).unwrap().args_json == "[3,4]"
    assert "parameter 'n'" in str(codec(locked).encode((3, "x"), {}).unwrap_err())
    assert "parameter 'lock'" in str(codec(locked).encode((threading.Lock(), 1), {}).unwrap_err())


def test_a_raising_validator_of_the_user_is_an_error_value() -> None:
    class Grumpy(Horse):
        def model_post_init(self, context: Any) -> None:
            raise KeyError("no hay")

    def f(horse: Grumpy) -> None: ...

    signature = SignatureCodec(f, {"horse": Grumpy})

    assert "no hay" in str(signature.encode((), {"horse": {"name": "a", "age": 1}}).unwrap_err())
    assert "no hay" in str(signature.decode(None, '{"horse":{"name":"a","age":1}}').unwrap_err())
