"""The package's warnings on the console."""

import io
import logging

import pytest

from mind2web2.cli.console import PlainConsole

LOG = logging.getLogger("mind2web2.lake")


@pytest.fixture
def warned(capsys):
    """Give a function that warns at a second and returns what is printed then."""

    def warn(second, message, **extra):
        record = LOG.makeRecord(
            LOG.name, logging.WARNING, __file__, 1, message, (), None, extra=extra
        )
        record.created = second
        LOG.handle(record)
        return capsys.readouterr().err.strip()

    return warn


def test_each_warning_is_one_line_once(warned):
    """Two caches of one folder report the same missing file."""
    with PlainConsole().show_warnings():
        told = [warned(0.0, text) for text in ("deep\nlake", "deep lake", "wide lake")]
    assert told == ["warning: deep lake", "", "warning: wide lake"]


def test_warnings_that_are_alike_come_one_in_ten_seconds(warned):
    with PlainConsole().show_warnings():
        assert warned(100.0, "try 1", alike="no reply") == "warning: try 1"
        assert warned(101.0, "try 2", alike="no reply") == ""
        assert warned(102.0, "busy", alike="status 503") == "warning: busy"
        assert warned(109.9, "try 3", alike="no reply") == ""
        assert (
            warned(110.0, "try 4", alike="no reply") == "warning: try 4 (2 more like it in between)"
        )
        assert warned(111.0, "try 5", alike="no reply") == ""
        assert (
            warned(200.0, "try 6", alike="no reply") == "warning: try 6 (1 more like it in between)"
        )


def test_progress_counts_on_a_terminal_alone():
    shown = []
    for is_terminal in (True, False):
        output = io.StringIO()
        console = PlainConsole(output, force_terminal=is_terminal, color_system=None)
        with console.show_progress("probes", 3) as advance:
            advance()
        shown.append(output.getvalue())
    assert "1/3" in shown[0]
    assert shown[1] == ""
