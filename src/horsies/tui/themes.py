"""Colour themes, and the colours of states, which keep their meaning in all of them."""

from typing import Final

from rich.text import Text
from textual.theme import Theme

THEMES: Final = (
    Theme(
        name="horsies-dark",
        primary="#6cb6ff",
        secondary="#539bf5",
        accent="#daaa3f",
        success="#6bc46d",
        warning="#daaa3f",
        error="#f47067",
        foreground="#d1d7e0",
        background="#1c2128",
        surface="#22272e",
        panel="#2d333b",
        dark=True,
    ),
    Theme(
        name="horsies-light",
        primary="#0969da",
        secondary="#218bff",
        accent="#9a6700",
        success="#1a7f37",
        warning="#9a6700",
        error="#cf222e",
        foreground="#1f2328",
        background="#ffffff",
        surface="#f6f8fa",
        panel="#eaeef2",
        dark=False,
    ),
)
# `t` goes through these; the last two come with Textual.
NAMES: Final = ("horsies-dark", "horsies-light", "nord", "solarized-light")

_DARK: Final = {
    "grey": "#909dab",
    "blue": "#6cb6ff",
    "yellow": "#daaa3f",
    "green": "#6bc46d",
    "red": "#f47067",
    "purple": "#dcbdfb",
}
_LIGHT: Final = {
    "grey": "#59636e",
    "blue": "#0969da",
    "yellow": "#9a6700",
    "green": "#1a7f37",
    "red": "#cf222e",
    "purple": "#8250df",
}
_STATES: Final = {
    "PENDING": "grey",
    "CLAIMED": "blue",
    "RUNNING": "yellow",
    "COMPLETED": "green",
    "FAILED": "red",
    "CANCELLED": "grey",
    "EXPIRED": "purple",
    "PAUSED": "purple",
    "alive": "green",
    "silent": "yellow",
    "gone": "red",
}


def colour(name: str, *, is_dark: bool) -> str:
    """The colour of a state, or a named one, as the theme needs it."""
    shades = _DARK if is_dark else _LIGHT
    return shades.get(_STATES.get(name, name), "")


def state_text(status: str, *, is_dark: bool) -> Text:
    return Text(status, colour(status, is_dark=is_dark))
