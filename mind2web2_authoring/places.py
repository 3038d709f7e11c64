"""Lines of a script or rubric file at which nodes and fields stand."""

from __future__ import annotations

import ast
import re

from mind2web2.plugin import FieldShape, PolicyRun, PolicyScript, ReadRubric

_LINE = re.compile(r"line (\d+)$")
_ERROR_LINE = re.compile(r"\bline (\d+)\b")


class Places:
    """Finds the lines of a file's nodes and fields; the file's name alone where there is none."""

    def __init__(self, script: PolicyScript, run: PolicyRun) -> None:
        self._script = script
        self._run = run
        self._read = ReadRubric.at(script.path)

    def of_leaf(self, leaf: str) -> str:
        """Return where a leaf is added."""
        added = self._run.added.get(leaf)
        if self._read is None:
            lines = [] if added is None else _LINE.findall(added.place)
            return self._at(*lines)
        for place, node in self._read.nodes():
            pattern = re.escape(node.id).replace(r"\{number\}", r"\d+")
            if re.fullmatch(pattern, leaf):
                return self._at(self._read.file.line_of(*place))
        return self._at()

    def of_field(self, shape: FieldShape) -> str:
        """Return where a field is declared."""
        if self._read is not None:
            first, *others = shape.in_words.split(".")
            parts = [part for name in others for part in ("fields", name)]
            return self._at(self._read.file.line_of("extract", first, *parts))
        for node in ast.walk(self._script.syntax()):
            match node:
                case ast.ClassDef(name=shape.template, body=body):
                    return self._at(_declared(body, shape.name) or node.lineno)
        return self._at()

    def of_error(self, message: str) -> str:
        """Return the last line that a script's error names."""
        lines = _ERROR_LINE.findall(message) if self._read is None else []
        return self._at(*lines[-1:])

    def _at(self, *lines: object) -> str:
        """Return the file's name with a line, or alone."""
        return ":".join([self._script.path.name, *map(str, lines)])


def _declared(body: list[ast.stmt], name: str) -> int | None:
    for node in body:
        match node:
            case ast.AnnAssign(target=ast.Name(found)) if found == name:
                return node.lineno
    return None
