"""Whatever fits its annotation comes back equal and of the same type."""

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from horsies.codec.results import ResultCodec
from horsies.codec.serde import rehydrate_value, to_jsonable
from horsies.codec.shapes import dumps, loads
from horsies.codec.signature import SignatureCodec
from horsies.result import TaskResult
from support.codec_models import Colour, Horse, Point, RaceHorse

INTEGERS = st.integers(-(2**62), 2**62)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
ZONES = st.builds(lambda hours: dt.timezone(dt.timedelta(hours=hours)), st.integers(-12, 14))
MOMENTS = st.datetimes(timezones=st.none() | ZONES)
HORSES = st.builds(Horse, name=TEXTS, age=INTEGERS) | st.builds(
    RaceHorse, name=TEXTS, age=INTEGERS, wins=INTEGERS
)
TYPED: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, INTEGERS),
    (str, TEXTS),
    (float, FLOATS),
    (bool, st.booleans()),
    (bytes, st.binary(max_size=12)),
    (dt.datetime, MOMENTS),
    (dt.date, st.dates()),
    (Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
    (uuid.UUID, st.uuids()),
    (Colour, st.sampled_from(Colour)),
    (Horse, HORSES),
    (Point, st.builds(Point, x=INTEGERS, y=INTEGERS)),
]
LEAVES = st.none() | st.booleans() | INTEGERS | FLOATS | TEXTS | MOMENTS | st.dates() | HORSES
# Keys never look like tags: those are refused, see test_codec_values.
UNTYPED = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(TEXTS.filter(lambda key: not key.startswith("__")), inner, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def typed_values(draw: st.DrawFn) -> tuple[Any, Any]:
    """An annotation and a value that fits it, also inside containers and unions."""
    annotation, values = draw(st.sampled_from(TYPED))
    match draw(st.sampled_from(["bare", "list", "dict", "optional", "tuple"])):
        case "list":
            return list[annotation], draw(st.lists(values, max_size=3))
        case "dict":
            return dict[str, annotation], draw(st.dictionaries(TEXTS, values, max_size=3))
        case "optional":
            return annotation | None, draw(st.none() | values)
        case "tuple":
            return tuple[annotation, Any], (draw(values), draw(UNTYPED))
        case _:
            return annotation, draw(values)


@given(typed_values())
def test_annotated_values_round_trip(case: tuple[Any, Any]) -> None:
    annotation, value = case

    stored = to_jsonable(value, annotation).unwrap()
    read = rehydrate_value(loads(dumps(stored)), annotation).unwrap()

    assert read == value
    assert type(read) is type(value)


@given(UNTYPED)
def test_values_without_annotation_round_trip(value: Any) -> None:
    assert rehydrate_value(to_jsonable(value).unwrap()).unwrap() == value


@given(UNTYPED)
def test_results_round_trip(value: Any) -> None:
    codec = ResultCodec(Any)

    assert codec.decode(codec.encode(TaskResult(ok=value))) == TaskResult(ok=value)


@given(typed_values(), typed_values(), st.booleans())
def test_arguments_round_trip(
    first: tuple[Any, Any], second: tuple[Any, Any], by_name: bool
) -> None:
    def function(a: Any, b: Any) -> None: ...

    signature = SignatureCodec(function, {"a": first[0], "b": second[0]})
    args = () if by_name else (first[1], second[1])
    kwargs = {"a": first[1], "b": second[1]} if by_name else {}

    encoded = signature.encode(args, kwargs).unwrap()

    assert signature.decode(encoded.args_json, encoded.kwargs_json).unwrap() == (args, kwargs)


@given(st.dictionaries(TEXTS | st.just("__datetime__") | st.just("__dataclass__"), UNTYPED))
def test_what_is_accepted_for_sending_can_always_be_read(value: dict[str, Any]) -> None:
    written = to_jsonable(value, dict[str, Any])

    if written.is_ok():
        assert rehydrate_value(written.unwrap(), dict[str, Any]).unwrap() == value
