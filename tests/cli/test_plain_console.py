"""Output that is not a terminal: names stay whole, and a reader may go."""

import subprocess
import sys
from io import StringIO

from mind2web2.cli.console import PlainConsole

PRINTING = """
import sys
from mind2web2.cli.console import PlainConsole
console = PlainConsole(outlives_reader=True)
errors = PlainConsole(file=sys.stderr, outlives_reader=True)
sys.stdin.readline()
for _ in range(3):
    console.print("to whom it may concern")
    errors.print("and to them as well")
open(sys.argv[1], "w").write("at the end")
"""


def test_a_reader_that_has_gone_ends_nothing(tmp_path):
    ended = tmp_path / "ended"
    command = [sys.executable, "-c", PRINTING, str(ended)]
    pipes = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
    }
    with subprocess.Popen(command, **pipes) as process:
        process.stdout.close()
        process.stdin.write(b"go on\n")
        process.stdin.close()
        assert process.wait(60) == 0
    assert ended.read_text() == "at the end"


def test_names_in_a_table_are_not_broken_in_a_pipe(monkeypatch):
    """Rich takes a pipe for 80 columns wide."""
    monkeypatch.setenv("COLUMNS", "80")
    piped = StringIO()
    name, numbers = "museum_saturday_in_the_old_town", ["123,456"] * 8
    PlainConsole(piped).print_table("Estimate", ["task", *numbers], [[name, *numbers]])
    assert name in piped.getvalue()


def test_numbers_in_a_table_are_whole_on_a_narrow_terminal():
    shown = StringIO()
    terminal = PlainConsole(shown, force_terminal=True, width=45)
    headings = ("metric", "mean", "spread of runs' means", "95% interval (tasks at large)")
    terminal.print_table("bot", headings, [["success", "0.38", "0.16", "0.25 to 0.51"]])
    rows = [line for line in shown.getvalue().splitlines() if "│" in line]
    cells = [[cell.strip() for cell in row.strip("│").split("│")] for row in rows]
    assert cells[0][:3] == ["success", "0.38", "0.16"]
    assert " ".join(row[3] for row in cells).split() == ["0.25", "to", "0.51"]
