"""The ``mind2web2`` command, and ``python -m mind2web2``."""

import signal
import sys

from mind2web2.cli import main


def command() -> None:
    """Run the command and end this process."""
    status = main()
    # While the interpreter ends, Ctrl-C has nothing to stop, and Python would print a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(status)


if __name__ == "__main__":
    command()
