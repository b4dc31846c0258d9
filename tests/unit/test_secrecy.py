"""What annotations call secret is masked, at any depth."""

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, SecretStr

from horsies import Secret
from horsies.codec.secrecy import MASK, masked


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
