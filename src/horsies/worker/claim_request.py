"""What one claim asks for, and how far it says it came."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, TypeAlias

from horsies.worker.identity import WorkerIdentity
from horsies.worker.settings import ServedQueue


class Mark(NamedTuple):
    """Where the scans of a worker have come to in one queue, priority and lane.

    Without id it stands before all rows of its instant. The instant is the text of
    `horsies_mark_text`, whose order is that of the instants: a row may hold what Python cannot.
    """

    enqueued_at: str
    id: str = ""


# What one claim carries, and what a lane takes ahead of its slots: about so many bytes.
MAX_BYTES = 64_000_000

# Queue name, priority and number of the lane, from 1: what a mark belongs to.
MarkKey: TypeAlias = tuple[str, int, int]


class ScanPosition(NamedTuple):
    """How far a lane was scanned that had fewer rows than the claim might have taken."""

    queue_name: str
    priority: int
    lane: int
    scanned_to_at: str
    scanned_to_id: str | None
    may_have_more: bool

    @property
    def mark(self) -> Mark:
        return Mark(self.scanned_to_at, self.scanned_to_id or "")


class CutShort(NamedTuple):
    """The claim ended at its byte limit; any lane may have more."""


class Counts(NamedTuple):
    """What the counts under caps remember for the next claim; its text is the database's own."""

    text: str


class Granted(NamedTuple):
    """A permit is committed; up to these numbers recovery has taken rows back, lane by lane."""

    voided: Sequence[int | None]


# What a claim answers beside tasks.
ClaimRow: TypeAlias = ScanPosition | CutShort | Counts | Granted


@dataclass(frozen=True, slots=True)
class LaneRequest:
    """How many tasks of one lane may start at once, and how many more may wait in the buffer.

    Starts run in children with these pids, else in the worker itself. The lane has the task names
    `only_names`, or all but `except_names`. A sparse lane found little the last time. Starts beyond
    `free_slots` are taken ahead, with numbers from `ahead_from` on.
    """

    starts: int
    claims: int = 0
    is_sparse: bool = False
    child_pids: Sequence[int] | None = None
    only_names: Sequence[str] | None = None
    except_names: Sequence[str] | None = None
    free_slots: int | None = None
    ahead_from: int | None = None

    @property
    def room(self) -> int:
        return self.starts + self.claims


@dataclass(frozen=True, slots=True)
class PermitRequest:
    """Up to these numbers, lane by lane, what was taken ahead may begin.

    It is the permit `number` of one of the two connections that grant them, and replaces those
    from `last_number` on.
    """

    granted_by: str
    number: int
    last_number: int
    permitted: Sequence[int]


@dataclass(frozen=True, slots=True)
class ClaimLimits:
    """What holds beside the queues' own caps; a soft cap does not count claims that wait.

    A queue that gave `batch_limit` rows shuts out the queues after it; 0 is no limit. The row whose
    arguments reach `byte_limit` is the last one of a claim. `counts` are those of the last claim;
    without them all that is in flight is counted.
    """

    cluster_cap: int | None = None
    counts_claims: bool = True
    batch_limit: int = 0
    byte_limit: int = MAX_BYTES
    counts: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """What one claim may take; the queues best first."""

    identity: WorkerIdentity
    lease: timedelta
    queues: Sequence[ServedQueue]
    lanes: Sequence[LaneRequest]
    limits: ClaimLimits
    marks: Mapping[MarkKey, Mark]
    is_full_scan: bool
    permit: PermitRequest | None = None
