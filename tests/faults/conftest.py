"""Fixtures of the tests of faults: commands that begin at once."""

import pytest
from faults.preloaded import Preloaded


@pytest.fixture(scope="session")
def commands():
    """Load the package once."""
    with Preloaded() as commands:
        yield commands
