"""Classes the codec tests write and read; in a module, so that a tag can name them."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

from pydantic import BaseModel, ConfigDict


class Horse(BaseModel):
    name: str
    age: int


class RaceHorse(Horse):
    wins: int


class Cart(BaseModel):
    wheels: int


class StrictEvent(BaseModel):
    model_config = ConfigDict(strict=True)
    at: datetime


@dataclass
class Point:
    x: int
    y: int


@dataclass
class Point3(Point):
    z: int


@dataclass(frozen=True)
class Frozen:
    name: str
    label: str = field(init=False, default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.name.upper())


@dataclass
class Loose:
    anything: Any


class Colour(Enum):
    BAY = "bay"
    GREY = "grey"
