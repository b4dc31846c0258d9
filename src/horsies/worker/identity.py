"""Who a worker is: its id, its host, its process."""

import os
import socket
import uuid
from typing import NamedTuple


class WorkerIdentity(NamedTuple):
    """Named in every row the worker holds."""

    worker_id: str
    hostname: str
    pid: int


def own_identity() -> WorkerIdentity:
    """A new worker in this process."""
    return WorkerIdentity(str(uuid.uuid4()), socket.gethostname(), os.getpid())
