"""Evaluate an agent's answers; the same as ``mind2web2 evaluate``."""

import sys

from mind2web2.cli import evaluate_main

if __name__ == "__main__":
    sys.exit(evaluate_main())
