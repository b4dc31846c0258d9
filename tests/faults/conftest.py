"""Chance that can be repeated: every test draws from the run's seed, shown in its summary."""

import os
import random

import pytest


@pytest.fixture
def seeded(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(f"{os.environ['HORSIES_FAULT_SEED']} {request.node.name}")
