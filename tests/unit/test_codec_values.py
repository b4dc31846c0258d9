"""Single values as JSON: by annotation, by tag, and what is refused."""

import datetime as dt
import json
import sys
import uuid
from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field

from horsies.codec.serde import (
    SerializationError,
    args_to_json,
    dumps_json,
    json_to_args,
    json_to_kwargs,
    kwargs_to_json,
    loads_json,
    rehydrate_value,
    to_jsonable,
)
from horsies.result import Err, Ok, TaskError, TaskResult
from support.codec_models import (
    Cart,
    Colour,
    Frozen,
    Horse,
    Loose,
    Point,
    Point3,
    RaceHorse,
    StrictEvent,
)

PLUS_TWO = dt.timezone(dt.timedelta(hours=2))
MOMENT = dt.datetime(2024, 2, 3, 4, 5, 6, 7, tzinfo=PLUS_TWO)
MODELS = "support.codec_models"


def name_of(value: object) -> str:
    """As repr, but the same in every process: xdist compares the names."""
    return repr(value).partition(" at 0x")[0]


class Weight(BaseModel):
    kilograms: float


class Bus(BaseModel):
    kind: Literal["bus"] = "bus"


class Train(BaseModel):
    kind: Literal["train"] = "train"
    cars: int


@pytest.mark.parametrize(
    ("value", "annotation", "stored"),
    [
        (None, None, None),
        (5, int, 5),
        ("é\0", str, "é\0"),
        (MOMENT, dt.datetime, "2024-02-03T04:05:06.000007+02:00"),
        (MOMENT.replace(tzinfo=None), dt.datetime, "2024-02-03T04:05:06.000007"),
        (MOMENT.date(), dt.date, "2024-02-03"),
        (Horse(name="a", age=1), Horse, {"name": "a", "age": 1}),
        (Point(1, 2), Point, {"x": 1, "y": 2}),
        (StrictEvent(at=MOMENT), StrictEvent, {"at": "2024-02-03T04:05:06.000007+02:00"}),
        ({1, 2}, set[int], [1, 2]),
        ((1, "a"), tuple[int, str], [1, "a"]),
        (Decimal("1.10"), Decimal, "1.10"),
        (uuid.UUID(int=1), uuid.UUID, "00000000-0000-0000-0000-000000000001"),
        (Colour.BAY, Colour, "bay"),
        (dt.timedelta(seconds=5), dt.timedelta, "PT5S"),
        (b"\xff\x00", bytes, "_wA="),
        ({1: Horse(name="a", age=1)}, dict[int, Horse], {"1": {"name": "a", "age": 1}}),
        (Cart(wheels=2), Horse | Cart, {"wheels": 2}),
        ([{"a": [1, None]}], list[dict[str, Any]], [{"a": [1, None]}]),
        (3, int | None, 3),
    ],
)
def test_an_annotation_makes_plain_json_that_reads_back(
    value: Any, annotation: Any, stored: Any
) -> None:
    assert to_jsonable(value, annotation) == Ok(stored)
    assert rehydrate_value(stored, annotation) == Ok(value)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ([None, True, 1, 1.5, "x"], [None, True, 1, 1.5, "x"]),
        ({"a": {"b": []}}, {"a": {"b": []}}),
        (MOMENT, {"__datetime__": True, "value": "2024-02-03T04:05:06.000007+02:00"}),
        (MOMENT.date(), {"__date__": True, "value": "2024-02-03"}),
        (MOMENT.timetz(), {"__time__": True, "value": "04:05:06.000007+02:00"}),
        (
            Horse(name="a", age=1),
            {
                "__pydantic_model__": True,
                "module": MODELS,
                "qualname": "Horse",
                "data": {"name": "a", "age": 1},
            },
        ),
        (
            Loose(MOMENT.date()),
            {
                "__dataclass__": True,
                "module": MODELS,
                "qualname": "Loose",
                "data": {"anything": {"__date__": True, "value": "2024-02-03"}},
            },
        ),
        (
            Frozen("bay"),
            {
                "__dataclass__": True,
                "module": MODELS,
                "qualname": "Frozen",
                "data": {"name": "bay", "label": "BAY"},
            },
        ),
        (
            TaskResult(ok=1),
            {"__task_result__": True, "ok": 1, "err": None},
        ),
    ],
)
@pytest.mark.parametrize("annotation", [Any, object])
def test_without_an_annotation_tags_tell_the_type(value: Any, stored: Any, annotation: Any) -> None:
    assert to_jsonable(value, annotation) == Ok(stored)
    assert rehydrate_value(stored, annotation) == Ok(value)


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (RaceHorse(name="a", age=1, wins=2), Horse),
        ([RaceHorse(name="a", age=1, wins=2), Horse(name="b", age=2)], list[Horse]),
        (RaceHorse(name="a", age=1, wins=2), Cart | Horse | dict[str, Any]),
        (Point3(1, 2, 3), Point),
        ([MOMENT], list),
        ((1, MOMENT), tuple),
        ({"a": MOMENT}, dict),
        ({"a": [Horse(name="a", age=1)]}, dict[str, Any]),
        ({MOMENT}, set),
        (TaskResult(err=TaskError(error_code="X", data=MOMENT)), TaskResult[int, TaskError]),
    ],
)
def test_what_an_annotation_leaves_open_keeps_its_type(value: Any, annotation: Any) -> None:
    stored = to_jsonable(value, annotation).unwrap()

    assert '"__' in json.dumps(stored)
    read = rehydrate_value(stored, annotation).unwrap()
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        {1, 2},
        Decimal(1),
        uuid.UUID(int=1),
        Colour.BAY,
        dt.timedelta(1),
        b"x",
        bytearray(b"x"),
        object(),
        {1: "a", "1": "b"},
        "\ud800",
        {"__datetime__": True, "value": "2020-01-01"},
        [{"__task_result__": 1}],
    ],
    ids=name_of,
)
def test_values_without_a_shape_are_refused(value: Any) -> None:
    result = to_jsonable(value)

    assert isinstance(result, Err)
    assert isinstance(result.err_value, SerializationError)


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (float("nan"), float),
        ([float("-inf")], list[float]),
        ("x", int),
        ({"__datetime__": True}, dict[str, bool]),
        (object(), Horse),
        (Weight(kilograms=float("nan")), Weight),
        ([Weight(kilograms=float("inf"))], list[Weight]),
    ],
)
def test_values_that_do_not_fit_their_annotation_are_refused(value: Any, annotation: Any) -> None:
    assert to_jsonable(value, annotation).is_err()


@pytest.mark.parametrize("value", [[1, 2], (1, 2), range(1, 3), iter([1, 2])], ids=name_of)
def test_an_iterable_arrives_as_a_list(value: Any) -> None:
    assert to_jsonable(value, Iterable[int]) == Ok([1, 2])
    assert rehydrate_value([1, 2], Iterable[int]) == Ok([1, 2])


def test_members_of_a_discriminated_union_round_trip() -> None:
    union = Annotated[Bus | Train, Field(discriminator="kind")]

    assert to_jsonable([Train(cars=2), Bus()], list[union]) == Ok(
        [{"kind": "train", "cars": 2}, {"kind": "bus"}]
    )
    assert rehydrate_value({"kind": "bus"}, union) == Ok(Bus())


def test_the_text_nan_is_not_the_number() -> None:
    assert dumps_json("NaN and Infinity") == Ok('"NaN and Infinity"')


def test_a_circle_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)

    assert to_jsonable(circle).is_err()


def test_classes_no_other_process_can_find_are_refused() -> None:
    class Local(BaseModel):
        x: int

    assert "inside a function" in str(to_jsonable(Local(x=1)).unwrap_err())
    assert to_jsonable(Local(x=1), Local) == Ok({"x": 1})


def test_a_validator_runs_once_not_at_both_ends() -> None:
    plus_one = Annotated[int, AfterValidator(lambda value: value + 1)]

    assert to_jsonable(1, plus_one) == Ok(1)
    assert rehydrate_value(1, plus_one) == Ok(2)


@pytest.mark.seed("S135")
@pytest.mark.parametrize("tag", ["__pydantic_model__", "__dataclass__"])
def test_a_tag_never_imports_its_module(tag: str) -> None:
    assert "this" not in sys.modules

    result = rehydrate_value({tag: True, "module": "this", "qualname": "X", "data": {}})

    assert isinstance(result, Err)
    assert "this" not in sys.modules


@pytest.mark.seed("S135")
def test_a_tag_does_not_reach_a_modules_lazy_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    module = sys.modules[MODELS]
    monkeypatch.setattr(module, "__getattr__", asked.append, raising=False)

    result = rehydrate_value(
        {"__dataclass__": True, "module": MODELS, "qualname": "Lazy", "data": {}}
    )

    assert isinstance(result, Err)
    assert asked == []


@pytest.mark.parametrize(
    "stored",
    [
        {"__pydantic_model__": True, "module": MODELS, "qualname": "Horse", "data": {"age": "x"}},
        {"__pydantic_model__": True, "module": MODELS, "qualname": "Point", "data": {}},
        {"__dataclass__": True, "module": MODELS, "qualname": "Horse", "data": {}},
        {"__dataclass__": True, "module": MODELS, "qualname": "Point", "data": {"x": 1}},
        {"__dataclass__": True, "module": MODELS, "qualname": "Point", "data": [1]},
        {"__dataclass__": True, "module": 3, "qualname": None, "data": {}},
        {"__datetime__": True, "value": "soon"},
        {"__date__": True},
    ],
)
def test_tags_that_do_not_fit_are_refused(stored: Any) -> None:
    assert rehydrate_value(stored).is_err()


def test_a_tag_is_accepted_where_the_annotation_would_have_sufficed() -> None:
    stored = {"__datetime__": True, "value": MOMENT.isoformat()}

    assert rehydrate_value(stored, dt.datetime) == Ok(MOMENT)
    assert rehydrate_value(stored, int).is_err()


def test_unknown_stored_fields_of_a_dataclass_are_ignored() -> None:
    stored = {
        "__dataclass__": True,
        "module": MODELS,
        "qualname": "Point",
        "data": {"x": 1, "y": 2, "old": 3},
    }

    assert rehydrate_value(stored) == Ok(Point(1, 2))
    assert rehydrate_value(stored["data"], Point) == Ok(Point(1, 2))
    assert rehydrate_value([stored["data"]], list[Point]) == Ok([Point(1, 2)])


def test_text_is_compact_and_keeps_other_scripts() -> None:
    assert dumps_json({"a": [1, "ö馬"]}) == Ok('{"a":[1,"ö馬"]}')
    assert dumps_json("\0") == Ok('"\\u0000"')
    assert args_to_json((1, (2,))) == Ok("[1,[2]]")
    assert kwargs_to_json({"a": None}) == Ok('{"a":null}')


def test_reading_text_and_arguments() -> None:
    assert loads_json(None) == loads_json("") == Ok(None)
    assert loads_json("[1]") == Ok([1])
    assert loads_json("[").is_err()
    assert json_to_args(None) == Ok([])
    assert json_to_kwargs(None) == Ok({})
    assert json_to_args([1]) == Ok([1])
    assert json_to_args({}).is_err()
    assert json_to_kwargs([]).is_err()
