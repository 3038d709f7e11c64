"""Options that name tasks, for the commands that read the benchmark's task lists."""

from __future__ import annotations

from pathlib import Path

from mind2web2.cli.options import CommandParser

TASKS_ROOT = Path("tasks")
DATASET = "osunlp/Mind2Web-2"


def add_tasks_root(parser: CommandParser) -> None:
    """Add the folder of task lists."""
    parser.add_argument(
        "--tasks_root",
        metavar="DIR",
        type=Path,
        default=TASKS_ROOT,
        help="the task lists (default: tasks/)",
    )


def add_task_list(
    parser: CommandParser,
    subject: str = "the tasks",
    default: str = "all tasks",
) -> None:
    """Add ``--task_list``."""
    text = f"{subject}: one id a line, or CSV with a column task_id"
    changed = {"task_list": {"help": text, "default_text": default}}
    parser.add_settings(["task_list"], changed=changed)
