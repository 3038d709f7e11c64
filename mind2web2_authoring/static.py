"""What the text of a script or rubric file shows to be wrong; nothing is run for this."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from pathlib import Path

from mind2web2.plugin import ReadRubric, YamlFileError, read_regular_file

_Found = tuple[int, str]


@dataclass(frozen=True)
class TextFault:
    """A reason why a file cannot be used.

    Args:
        line: from 1.
    """

    path: Path
    line: int
    reason: str

    @property
    def place(self) -> str:
        """Return file and line."""
        return f"{self.path.name}:{self.line}"

    def __str__(self) -> str:
        """Return one line."""
        return f"cannot be used: {self.reason}"


def text_faults(path: Path) -> list[TextFault]:
    """Return why an eval script or rubric file cannot be used."""
    try:
        is_rubric = ReadRubric.at(path) is not None
        faults = [] if is_rubric else _faults_of_script(read_regular_file(path))
    except YamlFileError as error:
        faults = [
            (each.line, f"{each.field}: {each.message}".removeprefix(": "))
            for each in error.problems
        ]
    return [TextFault(path, line, " ".join(reason.split())) for line, reason in faults]


def _faults_of_script(source: bytes) -> list[_Found]:
    if not source.strip():
        return [(1, "the file is empty")]
    try:
        with warnings.catch_warnings():
            # Literals such as "\d" are the author's matter.
            warnings.simplefilter("ignore")
            ast.parse(source)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        return [(line, getattr(error, "msg", None) or str(error))]
    except (RecursionError, MemoryError):
        return [(1, "nested too deeply to be read")]
    return []
