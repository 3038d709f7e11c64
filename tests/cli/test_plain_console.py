"""A run whose reader has gone goes on in silence."""

import subprocess
import sys

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
