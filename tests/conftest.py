"""What holds for all tests."""

import sys
from collections.abc import Generator

import pytest


@pytest.fixture(autouse=True)
def _started_as_mind2web2(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make commands that messages suggest the same, however the tests were started."""
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setattr(sys, "argv", ["mind2web2"])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write what was logged so that it can be sent: it may hold halves of characters."""
    report = yield
    report.sections = [
        (name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections
    ]
    return report
