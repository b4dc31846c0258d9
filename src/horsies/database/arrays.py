"""PostgreSQL array literals for batches, far cheaper than the driver's dumping by element.

A batch of 500 rows carries thousands of elements; joining text once per column keeps that out of
the profile.
"""

from collections.abc import Iterable


def plain_array(values: Iterable[object]) -> str:
    """An array of values whose text needs no quoting: ids, numbers, claim instants, or `None`."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def quoted_array(values: Iterable[object]) -> str:
    """An array of any text (JSON, names, messages, instants), or `None`."""
    return (
        "{"
        + ",".join(
            [
                "NULL"
                if value is None
                else '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
                for value in values
            ]
        )
        + "}"
    )
