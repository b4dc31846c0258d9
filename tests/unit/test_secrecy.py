"""What annotations call secret is masked, at any depth."""

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, SecretBytes, SecretStr

from horsies import Horsies, Secret
from horsies.codec.secrecy import MASK, masked, masked_arguments


class Card(BaseModel):
    owner: str
    number: Annotated[str, Secret]
    code: SecretStr | None = None


@dataclass
class Order:
    id: int
    card: Card


@pytest.mark.parametrize(
    ("annotation", "value", "shown"),
    [
        pytest.param(str, "a", "a", id="plain"),
        pytest.param(Annotated[str, Secret], "a", MASK, id="marked"),
        pytest.param(Annotated[str, Secret()], "a", MASK, id="marked by an instance"),
        pytest.param(Annotated[str, Secret] | None, "a", MASK, id="optional"),
        pytest.param(SecretStr, "a", MASK, id="pydantic"),
        pytest.param(
            Card,
            {"owner": "ann", "number": "4", "code": "1"},
            {"owner": "ann", "number": MASK, "code": MASK},
            id="model",
        ),
        pytest.param(
            Order,
            {"id": 1, "card": {"owner": "ann", "number": "4"}},
            {"id": 1, "card": {"owner": "ann", "number": MASK}},
            id="dataclass",
        ),
        pytest.param(list[Card], [{"number": "4"}], [{"number": MASK}], id="list"),
        pytest.param(dict[str, Card], {"x": {"number": "4"}}, {"x": {"number": MASK}}, id="dict"),
        pytest.param(Any, {"number": "4"}, {"number": "4"}, id="anything"),
        pytest.param(None, [1, "a"], [1, "a"], id="unknown"),
    ],
)
def test_secrets_are_masked(annotation: Any, value: Any, shown: Any) -> None:
    assert masked(value, annotation) == shown


class Vault(Card):
    """A subclass, as an argument may be."""


@dataclass
class Login:
    user: str
    password: SecretStr


SENT: dict[str, tuple[Any, Any]] = {
    "text": (SecretStr, SecretStr("hunter2")),
    "text that is wrapped on the way": (SecretStr, "hunter2"),
    "bytes": (SecretBytes, SecretBytes(b"\xffhunter2")),
    "optional": (SecretStr | None, SecretStr("hunter2")),
    "empty": (SecretStr, SecretStr("")),
    "the mask itself": (SecretStr, SecretStr("**********")),
    "field of a model": (Card, Card(owner="ann", number="4", code=SecretStr("1"))),
    "field of a subclass": (Card, Vault(owner="ann", number="4", code=SecretStr("1"))),
    "field of a dataclass": (Login, Login("ann", SecretStr("hunter2"))),
    "in containers": (dict[str, list[Card]], {"a": [Card(owner="b", number="4", code="1")]}),
    "a text that looks masked": (str, "**********"),
}


@pytest.mark.parametrize(("annotation", "value"), SENT.values(), ids=SENT)
def test_secrets_arrive_at_the_task(annotation: Any, value: Any) -> None:
    app = Horsies("postgresql://nowhere/none", allow_plain_returns=True)

    def unlock(secret: Any) -> None: ...

    unlock.__annotations__["secret"] = annotation
    definition = app.task("unlock")(unlock).definition
    for args, kwargs in (((value,), {}), ((), {"secret": value})):
        written = definition.encode_arguments(args, kwargs).unwrap()
        read_args, read_kwargs = definition.decode_arguments(*written).unwrap()

        arrived = read_args[0] if args else read_kwargs["secret"]
        assert arrived == (
            SecretStr(value) if annotation is SecretStr and value == "hunter2" else value
        )


def test_viewers_see_arguments_masked_by_position_and_by_name() -> None:
    annotations = {"order": int, "card": Annotated[str, Secret], "login": Login}
    shown = masked_arguments('[7,"4711"]', '{"login":{"user":"a","password":"b"}}', annotations)

    assert shown == (f'[7,"{MASK}"]', f'{{"login":{{"user":"a","password":"{MASK}"}}}}')
    assert masked_arguments("no JSON", None, annotations) == ("no JSON", None)
