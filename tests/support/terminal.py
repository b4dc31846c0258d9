"""Driving `horsies top` in tests: press keys and wait until what they changed has been read."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from textual.pilot import Pilot

from horsies import Horsies
from horsies.tui.app import Top
from support.eventually import eventually_async


@asynccontextmanager
async def viewer(
    url: str | Horsies, *, size: tuple[int, int] = (120, 40), is_dark: bool = True
) -> AsyncIterator[Pilot[None]]:
    """A viewer without a terminal that has read its first picture."""
    app = url if isinstance(url, Horsies) else Horsies(url)
    top = Top(app, tick_rate=1, is_dark=is_dark)
    top.NOTIFICATION_TIMEOUT = 600  # what was told stays until the test has read it
    try:
        async with top.run_test(size=size) as pilot:
            await settle(pilot)
            yield pilot
    finally:
        await top.horsies.get_broker().close_async()


async def press(pilot: Pilot[None], *keys: str) -> Top:
    """Press keys one after another, each when the one before has shown its effect."""
    for key in keys:
        await pilot.press(key)
        await settle(pilot)
    return top_of(pilot)


async def until(pilot: Pilot[None], is_right: Callable[[str], bool]) -> None:
    """Wait until the screen shows what an action has changed; it may take longer than a look."""

    async def is_shown() -> bool:
        top_of(pilot).wake()
        return is_right(text_of(pilot))

    await eventually_async(is_shown)


async def search(pilot: Pilot[None], text: str) -> None:
    """Type another text into the search of the view."""
    old = len(top_of(pilot).view.sought)
    await pilot.press("slash", *["backspace"] * old, *text, "enter")
    await settle(pilot)


async def settle(pilot: Pilot[None]) -> None:
    """Wait until all has been read anew since now."""
    top = top_of(pilot)
    before = top.read_count

    async def is_read() -> bool:
        top.wake()
        return top.read_count >= before + 2  # the first may have begun before now

    await eventually_async(is_read)
    await pilot.pause()


def top_of(pilot: Pilot[None]) -> Top:
    assert isinstance(pilot.app, Top)
    return pilot.app


def text_of(pilot: Pilot[None]) -> str:
    """What the terminal shows, line by line."""
    screen = pilot.app.screen
    width, height = screen.size
    strips = screen._compositor.render_strips(screen.size)
    return "\n".join(strip.text.rstrip() for strip in strips[:height] if width)
