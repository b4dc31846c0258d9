"""Frames on a pipe."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horsies.executors.frames import LONG_TEXT, FrameReader, UnreadableFrameError, pack, pack_long

_values = (
    st.none()
    | st.booleans()
    | st.integers(0, 2**53)
    | st.text(st.characters(exclude_categories=["Cs"]))
)


@given(
    messages=st.lists(st.lists(_values, max_size=4), max_size=6),
    cuts=st.lists(st.integers(0, 400), max_size=8),
)
def test_messages_survive_however_the_stream_is_cut(
    messages: list[list[Any]], cuts: list[int]
) -> None:
    stream = b"".join(pack(*message) for message in messages)
    edges = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    reader = FrameReader()

    received = [
        message for start, end in pairwise(edges) for message in reader.feed(stream[start:end])
    ]

    assert received == messages


@pytest.mark.parametrize("step", [1 << 16, 1 << 24], ids=["in pieces", "at once"])
def test_long_texts_arrive_whole_and_in_their_fields(step: int) -> None:
    long, longer = "ü\U0001f40e" * LONG_TEXT, "x" * (3 * LONG_TEXT + 1)
    messages = [[1, long, None, "short", longer], [2, "short"], [3, longer]]
    stream = b"".join(frame for message in messages for frame in pack_long(*message))
    reader = FrameReader()

    received = [
        message
        for start in range(0, len(stream), step)
        for message in reader.feed(stream[start : start + step])
    ]

    assert received == messages


@pytest.mark.parametrize(
    "received", [b"any text", b"\x00\x00\x00\x00", b"\x80\x00\x00\x01\xff", b"\x00\x00\x00\x01{"]
)
def test_what_is_no_frame_is_refused(received: bytes) -> None:
    with pytest.raises(UnreadableFrameError):
        list(FrameReader().feed(received))
