"""Fixtures and settings of all tests."""

import gc
import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from key_variables import KEY_VARIABLES

from mind2web2.llm_client.retries import RetryPolicy

# How fast the machine is decides no test.
settings.register_profile(
    "random", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# The same cases each time, so that a change fails by its own fault; `make random` draws others.
settings.register_profile(
    "fixed", settings.get_profile("random"), derandomize=True, max_examples=50
)
settings.load_profile("fixed")

# Where a job of cron or CI runs, it may be "dumb", which has no live displays.
os.environ["TERM"] = "xterm-256color"


@pytest.fixture
def quick():
    """Give a client of judges the usual number of tries, without the usual waits."""
    return RetryPolicy(
        tries=4,
        total_s=30,
        outage_wait_s=0.5,
        first_wait_s=0.001,
        longest_wait_s=0.01,
        request_timeout_s=20,
    )


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Run without judges' keys, and fix the form of suggested commands.

    The commands are the same however the tests were started.
    """
    if not request.node.get_closest_marker("live"):
        for name in KEY_VARIABLES:
            monkeypatch.delenv(name, raising=False)
        # Without certificates: each client would read those of the system, 30 ms of processor time.
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        monkeypatch.setenv("SSL_CERT_DIR", str(Path(__file__).parent))
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setattr(sys, "argv", ["mind2web2"])


_ON_REQUEST = ("live", "long", "scripts")
_FIRST = (
    "tests/products/ray/",
    "tests/scripts/test_passes_of_cases.py",
    "tests/faults/test_processes.py",
    "tests/documents/test_site.py",
)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep garbage collection from going through all tests again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write what was logged so that it can be sent: it may hold halves of characters."""
    report = yield
    report.sections = [
        (name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections
    ]
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what runs only on request, and begin with the cluster and with long tests.

    At the end, several processes would share them, and start a cluster each or wait for the last
    one.
    """
    items.sort(key=lambda item: not item.nodeid.startswith(_FIRST))
    if config.option.markexpr:
        return
    left_out = [
        item for item in items if any(item.get_closest_marker(name) for name in _ON_REQUEST)
    ]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)
