"""``mind2web2 rubric``: rubric files shown, turned into scripts, imported and exported."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from mind2web2.cli.options import Subcommands
from mind2web2.errors import EvalScriptError, UsageError
from mind2web2.utils.names import check_name
from mind2web2.utils.text import counted

DESCRIPTION = """\
Work with rubric files: tasks in YAML, as eval_scripts/VERSION/TASK.yaml (docs/rubric-files.md).

  mind2web2 rubric show FILE              print the tree and what each leaf asks
  mind2web2 rubric script FILE -o F.py    write the equal eval script, to go on in Python
  mind2web2 rubric export FILE -o F.json  write the tree as QUEST has it
  mind2web2 rubric import FILE -o FOLDER  write rubric files from QUEST, PaperBench, HealthBench,
                                          ResearchRubrics or DRACO (JSON or JSON lines)
"""


def add_command(commands: Subcommands) -> None:
    """Add ``rubric`` to ``mind2web2``."""
    rubric = commands.add_parser(
        "rubric", help="show, convert and import rubric files", description=DESCRIPTION
    )
    kinds = rubric.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, run, promise in (
        ("show", run_show, "print the tree"),
        ("script", run_script, "write the equal eval script"),
        ("export", run_export, "write the tree as QUEST has it"),
    ):
        parser = kinds.add_parser(name, help=promise)
        parser.add_argument("file", metavar="FILE", type=Path, help="a rubric file")
        if name != "show":
            parser.add_argument(
                "-o",
                "--output",
                metavar="FILE",
                type=Path,
                help="default: standard output",
            )
        parser.set_defaults(run=run)
    importing = kinds.add_parser(
        "import", help="write rubric files from other tools' rubrics"
    )
    importing.add_argument(
        "file", metavar="FILE", type=Path, help="JSON, or JSON lines with a rubric each"
    )
    importing.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        type=Path,
        required=True,
        help="where the rubric files go",
    )
    importing.add_argument(
        "--task_id", metavar="ID", help="of the only rubric (default: from the file)"
    )
    importing.add_argument(
        "--negate",
        action="store_true",
        help="write criteria with a negative weight as denials (default: leave them out)",
    )
    importing.set_defaults(run=run_import)


def run_show(options: argparse.Namespace) -> int:
    """Print the tree and return the exit status."""
    from mind2web2.cli.console import line, plain_console
    from mind2web2.scripts.rubric_outline import tree_lines
    from mind2web2.scripts.rubric_reading import read_rubric

    rubric = read_rubric(_existing(options.file)).rubric
    console = plain_console()
    for text in tree_lines(rubric):
        line(console, text)
    return 0


def run_script(options: argparse.Namespace) -> int:
    """Write the script and return the exit status."""
    from mind2web2.scripts.rubric_reading import read_rubric
    from mind2web2.scripts.rubric_script import script_of

    return _write(
        options.output, script_of(read_rubric(_existing(options.file)).rubric)
    )


def run_export(options: argparse.Namespace) -> int:
    """Write QUEST's tree and return the exit status."""
    from mind2web2.authoring.rubric_imports import quest_tree
    from mind2web2.scripts.rubric_reading import read_rubric

    tree = quest_tree(read_rubric(_existing(options.file)).rubric)
    return _write(options.output, json.dumps(tree, indent=2, ensure_ascii=False) + "\n")


def run_import(options: argparse.Namespace) -> int:
    """Write the rubric files and return the exit status."""
    from mind2web2.authoring.rubric_imports import import_rubrics
    from mind2web2.cli.console import line, plain_console
    from mind2web2.utils.files import write_whole

    if options.task_id is not None:
        check_name("task", options.task_id)
    try:
        imported = import_rubrics(
            options.file, negate=options.negate, task_id=options.task_id
        )
    except EvalScriptError as error:
        raise UsageError(
            f"{options.file} gives no proper rubric file: {error}"
        ) from error
    paths = [options.output / f"{each.rubric.task}.yaml" for each in imported]
    taken = next(
        (
            path
            for number, path in enumerate(paths)
            if path.exists() or path in paths[:number]
        ),
        None,
    )
    if taken is not None:
        raise UsageError(
            f"{taken} is there already: move it away, or name another folder"
        )
    for path, each in zip(paths, imported, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, each.text())
    left_out = sum(each.left_out for each in imported)
    console = plain_console()
    kinds = ", ".join(sorted({each.kind for each in imported}))
    line(
        console,
        f"{counted(len(paths), 'rubric file')} written to {options.output} (from {kinds})",
    )
    if left_out:
        line(
            console,
            f"{left_out} criteria with a negative weight were left out: --negate writes them as denials",
        )
    return 0


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise UsageError(f"no rubric file {path}")
    return path


def _write(path: Path | None, text: str) -> int:
    from mind2web2.utils.files import write_whole

    if path is None:
        sys.stdout.write(text)
    elif path.exists():
        raise UsageError(f"{path} is there already: name another file")
    else:
        write_whole(path, text)
    return 0
