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


def own_identity() -> WorkerIdentity:
    """A new worker in this process."""
    return WorkerIdentity(str(uuid.uuid4()), socket.gethostname(), os.getpid(), host_key())
