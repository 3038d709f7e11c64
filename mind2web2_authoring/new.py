"""``mind2web2 new``: the first version of a task of the user's own."""

from __future__ import annotations

import argparse

from mind2web2.plugin import (
    PlainConsole,
    check_name,
    command_line,
    settings_of,
)
from mind2web2_authoring.new_task import new_task


def run(options: argparse.Namespace) -> int:
    """Write the files, print them and the next step, and return the exit status."""
    task_id = check_name("task", options.task)
    version = check_name("version", options.version)
    written = new_task(
        task_id,
        settings_of(options).paths.eval_scripts_root / version,
        options.cases / task_id,
        question=options.question,
        as_script=options.python,
    )
    console = PlainConsole()
    console.print_lines(written, "written: ")
    console.print_line(f"Next: {command_line('rehearse', task_id, '--write_cases')}")
    return 0
