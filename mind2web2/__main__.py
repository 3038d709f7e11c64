"""The ``mind2web2`` command, and ``python -m mind2web2``."""

import signal
import sys
from importlib import import_module


def command() -> None:
    """Run the command and end this process."""
    try:
        status = import_module("mind2web2.cli").main()
    except KeyboardInterrupt:
        # While modules are loaded; later, each command says itself what is kept.
        status = 130
    # While the interpreter ends, Ctrl-C has nothing to stop, and Python would print a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(status)


if __name__ == "__main__":
    command()
