"""The stretches of time that pages offer: one list, one way to read the viewer's choice."""

from datetime import timedelta

from horsies.web.visit import RefusedError, Visit

SPANS = {
    "5m": timedelta(minutes=5),
    "30m": timedelta(minutes=30),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(days=1),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}


def span_of(visit: Visit, default: str) -> tuple[str, timedelta]:
    """The stretch that the address names, with its name."""
    name = visit.query("span", default)
    if name not in SPANS:
        raise RefusedError(f"{name!r} is no length of time; choose one of {', '.join(SPANS)}.")
    return name, SPANS[name]
