"""The work of ``mind2web2 check``."""

from __future__ import annotations

import argparse

from mind2web2.plugins.check.inputs import report_text
from mind2web2.plugins.check.statements import read_report


def run(options: argparse.Namespace) -> int:
    """Print what each report states, and return the exit status."""
    for report in options.reports:
        print(read_report(report_text(report)).model_dump_json(indent=2))  # noqa: T201
    return 0
