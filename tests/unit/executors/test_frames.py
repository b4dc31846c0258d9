"""Frames on a pipe."""

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from horsies.executors.frames import FrameReader, pack

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
