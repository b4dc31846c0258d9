"""Who a worker is: its id, its host, its process."""

import os
import socket
import uuid
from typing import NamedTuple

from horsies.recovery.process_identity import host_key


class WorkerIdentity(NamedTuple):
    """Named in every row the worker holds; `host_key` says where its pid can be looked up."""

    worker_id: str
    hostname: str
    pid: int
    host_key: str = ""


def own_identity(worker_id: str | None = None) -> WorkerIdentity:
    """A new worker in this process; an id that is given must be its own as long as it lives."""
    own_id = worker_id or str(uuid.uuid4())
    return WorkerIdentity(own_id, socket.gethostname(), os.getpid(), host_key())
