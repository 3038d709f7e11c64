"""The example project: answers, eval scripts, pages and judgments about an invented town."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mind2web2.errors import ResultWriteError, UsageError
from mind2web2.utils.files import read_regular_file, write_whole
from mind2web2.utils.names import name_list

AGENT = "example"
JUDGMENTS = Path("examples/judgments.jsonl")
_FOLDERS = ("answers/example", "cache/example", "eval_scripts/example")
_PACKAGE = Path(__file__).parents[1]


def write_example(folder: Path) -> int:
    """Write the example project into a folder and return the number of new files.

    Raises:
        UsageError: a file there has other content.
        ResultWriteError: the folder cannot be written.
    """
    files = {folder / name: content for name, content in _files()}
    with ResultWriteError.unable_to(f"write to {folder}"):
        existing_files = {path: read_regular_file(path) for path in files if path.exists()}
        if changed := [
            str(path) for path, content in existing_files.items() if content != files[path]
        ]:
            raise UsageError(f"{name_list(changed)} differ from the example: name another folder")
        for path in files.keys() - existing_files.keys():
            write_whole(path, files[path])
    return len(files) - len(existing_files)


def _files() -> Iterator[tuple[str, bytes]]:
    """Yield the files by their paths in the project, from the package or the clone."""
    packed = _PACKAGE / "example_project"
    root = packed if packed.is_dir() else _PACKAGE.parent
    if not (root / JUDGMENTS).is_file():
        raise UsageError(
            f"this installation lacks the example ({root / JUDGMENTS}): install the package again"
        )
    paths = [
        path for name in _FOLDERS for path in sorted((root / name).rglob("*")) if _is_part(path)
    ]
    for path in (*paths, root / JUDGMENTS):
        yield path.relative_to(root).as_posix(), path.read_bytes()


def _is_part(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
