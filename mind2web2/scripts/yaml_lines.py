"""YAML files of authors: plain values with the line of each part.

Faults name line and field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from mind2web2.errors import EvalScriptError
from mind2web2.utils.names import nearest_name
from mind2web2.utils.text import first_few

MAX_BYTES = 2 * 1024**2

_Model = TypeVar("_Model", bound=BaseModel)
# Keys and positions that lead to a part, such as ("root", "children", 0).
Place = tuple[str | int, ...]


@dataclass(frozen=True, order=True)
class Problem:
    """A fault of a file.

    Args:
        line: from 1.
        field: where it stands, such as ``root.children[0].claim``.
        message: what is wrong and what would be right.
    """

    line: int
    field: str
    message: str

    def __str__(self) -> str:
        """Return one line without the file's name."""
        return (
            f"line {self.line}, {self.field}: {self.message}"
            if self.field
            else f"line {self.line}: {self.message}"
        )


class YamlFileError(EvalScriptError):
    """A file of an author's cannot be used.

    ``problems`` has all faults, the text the first of them.
    """

    _MAX_SHOWN = 5

    def __init__(self, path: Path, problems: Sequence[Problem]) -> None:
        self.path = path
        self.problems = tuple(problems)
        shown = first_few(list(map(str, problems)), self._MAX_SHOWN)
        super().__init__(f"{path}, {'; '.join(shown)}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the parts, as a script's process sends its errors to the run."""
        return type(self), (self.path, self.problems)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # libyaml may be missing
    """Leaves dates, times, ``3.10``, ``007`` and ``NO`` as the text that the author wrote."""


def _as_written(_loader: object, node: yaml.ScalarNode) -> object:
    """Return a number or a truth value if it is spelled as JSON spells it, else the text."""
    text: str = node.value
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if json.dumps(value) == text else text


for _kind in ("int", "float", "bool", "timestamp"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _as_written)


_TOKEN_CURE = "indent with spaces, not tabs, and put a text that begins with @, ` or % in quotes"
_BLOCK_CURE = 'check the indentation, and put a text that begins with { or " in quotes'
_CURES = (
    (
        "could not find expected ':'",
        "write a colon and a space after the key, or indent a text that goes on",
    ),
    ("unknown escape", "write \\\\ for a backslash, or take single quotes"),
    ("quoted scalar", "end the text with the quote that it begins with"),
    (
        "mapping values are not allowed",
        "put a text that contains ': ' in quotes, or begin it with | on a line; and check the "
        "indentation",
    ),
    ("expected <block end>", _BLOCK_CURE),
    ("did not find expected key", _BLOCK_CURE),
    ("cannot start any token", _TOKEN_CURE),
    (
        "expected ',' or '}'",
        "close the brace, or put a text that begins with { in quotes",
    ),
    (
        "while parsing a flow",
        "close the bracket, or put a text that begins with { or [ in quotes",
    ),
)


@dataclass(frozen=True)
class AuthorFile:
    """The plain values of an author's file, with the line of each part.

    Args:
        lines: from 1, by the keys and positions that lead to a part.
    """

    path: Path
    plain: object = None
    lines: Mapping[Place, int] = field(default_factory=dict)

    @classmethod
    def parsed(cls, content: bytes, path: Path) -> Self:
        """Return a file with this content. Raises YamlFileError: it is no proper YAML."""
        return cls(path, *_parsed_yaml(content, path))

    def values_of(self, model: type[_Model], *parts: type[BaseModel]) -> _Model:
        """Return the values as a model has them.

        Args:
            parts: the models of its parts, one of whose fields an unknown name was meant to be.

        Raises:
            YamlFileError: they do not fit; it has all faults.
        """
        models: tuple[type[BaseModel], ...] = (model, *parts)
        fields = {name for each in models for name in each.model_fields}
        try:
            return model.model_validate(self.plain or {})
        except ValidationError as error:
            raise YamlFileError(self.path, _problems_of(error, self.lines, fields)) from None

    def line_of(self, *place: str | int) -> int:
        """Return the line of a part, or of what is around it."""
        return _line_of(self.lines, place)

    def problem(self, place: Place, message: str) -> Problem:
        """Return a fault of a part."""
        return Problem(self.line_of(*place), _field_name(place), message)

    def fault(self, place: Place, message: str) -> YamlFileError:
        """Return the error of a part."""
        return YamlFileError(self.path, [self.problem(place, message)])

    def unknown(self, place: Place, what: str, known: Iterable[str]) -> YamlFileError:
        """Return the error of a name that is none of those that are known."""
        return self.fault(place, f"no {what} '{place[-1]}'{nearest(str(place[-1]), known)}")

    def misfit(self, place: Place, error: ValidationError) -> YamlFileError | None:
        """Return the error of values below a place, ``None`` if only some are missing."""
        first = error.errors(include_url=False)[0]
        if first["type"] == "missing":
            return None
        return self.fault((*place, *first["loc"]), _value_fault(first, ()))


def _parsed_yaml(content: bytes, path: Path) -> tuple[object, dict[Place, int]]:
    """Return plain values, and the line of each by its keys and positions.

    Raises:
        YamlFileError: no proper YAML.
    """
    if len(content) > MAX_BYTES:
        raise YamlFileError(path, [Problem(1, "", f"larger than {MAX_BYTES // 1024**2} MB")])
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise YamlFileError(path, [Problem(line, "", "not UTF-8: save it as UTF-8")]) from error
    try:
        loader = _Loader(text)
        top = loader.get_single_node()
        if top is None:
            return None, {}
        lines: dict[Place, int] = {}
        if faults := list(_noted_lines(top, (), lines, set())):
            raise YamlFileError(path, faults)
        return loader.construct_document(top), lines
    except yaml.MarkedYAMLError as error:
        raise YamlFileError(path, [_yaml_problem(error)]) from error
    except yaml.reader.ReaderError as error:
        raise YamlFileError(path, [_unreadable_character(error, text)]) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise YamlFileError(path, [Problem(1, "", f"no proper YAML: {reason}")]) from error


# Parts without an end: the fault is where they begin, and is noticed on a later line.
_BEGUN = re.compile(r"simple key|scanning a .*quoted scalar|flow (?:sequence|mapping)")


def _yaml_problem(error: yaml.MarkedYAMLError) -> Problem:
    mark = noticed = error.problem_mark or error.context_mark
    if error.context_mark is not None and _BEGUN.search(error.context or ""):
        mark = error.context_mark
    reason = " ".join(filter(None, (error.context, error.problem)))
    cure = next(
        (cure for sign, cure in _CURES if sign in reason),
        "check quotes and indentation",
    )
    if mark is None or noticed is None:
        return Problem(1, "", f"no proper YAML ({reason}): {cure}")
    if noticed.line > mark.line:
        reason += f", noticed in line {noticed.line + 1}"
    return Problem(mark.line + 1, "", f"no proper YAML ({reason}): {cure}")


def _unreadable_character(error: yaml.reader.ReaderError, text: str) -> Problem:
    # The error's position counts bytes or characters, as the parser does.
    before = text.partition(chr(error.character))[0]
    line = before.count("\n") + 1
    message = f"no proper YAML (character #x{error.character:04x}: {error.reason}): remove it"
    return Problem(line, "", message)


def _noted_lines(
    node: yaml.Node,
    place: Place,
    lines: dict[Place, int],
    seen: set[int],
) -> Iterator[Problem]:
    lines.setdefault(place, node.start_mark.line + 1)
    if not isinstance(node, yaml.MappingNode | yaml.SequenceNode):
        return
    if id(node) in seen:
        yield Problem(
            node.start_mark.line + 1,
            _field_name(place),
            "anchors and aliases do not work here",
        )
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for position, item in enumerate(node.value):
            yield from _noted_lines(item, (*place, position), lines, seen)
        return
    for key, value in node.value:
        name = str(key.value)
        line = key.start_mark.line + 1
        if (*place, name) in lines:
            first = lines[(*place, name)]
            yield Problem(
                line,
                _field_name((*place, name)),
                f"stands twice, first in line {first}: keep one",
            )
        lines[(*place, name)] = line
        yield from _noted_lines(value, (*place, name), lines, seen)


def _field_name(place: Place) -> str:
    """Return a place as text, such as ``root.children[0].claim``."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _line_of(lines: Mapping[Place, int], place: Place) -> int:
    """Return the line of a place, or of what is around it."""
    for length in range(len(place), -1, -1):
        if line := lines.get(tuple(place[:length])):
            return line
    return 1


def _problems_of(
    error: ValidationError, lines: Mapping[Place, int], fields: Collection[str]
) -> list[Problem]:
    """Return the faults that a model found in a file's values, in the order of their lines.

    Args:
        fields: all names of fields, one of which an unknown name was meant to be.
    """
    faults = [(_place_of(fault, lines), fault) for fault in error.errors(include_url=False)]
    problems = set()
    for place, fault in faults:
        is_above = any(place == other[: len(place)] != other for other, _ in faults)
        if fault["type"] == "too_short" and is_above:
            # Parts with faults of their own do not count for pydantic.
            continue
        problems.add(
            Problem(_line_of(lines, place), _field_name(place), _value_fault(fault, fields))
        )
    return sorted(problems)


def _place_of(fault: Any, lines: Mapping[Place, int]) -> Place:
    # Any: the error dictionaries of pydantic.
    place: Place = ()
    for part in fault["loc"]:
        # A part that the file does not have names the branch of a union.
        if (*place, part) in lines:
            place = (*place, part)
    return (*place, fault["loc"][-1]) if fault["type"] == "missing" else place


def _value_fault(fault: Any, fields: Collection[str]) -> str:
    """Return what pydantic says is wrong with a value, and the value."""
    name = fault["loc"][-1] if fault["loc"] else ""
    if fault["type"] == "extra_forbidden":
        close = nearest_name(name, set(fields) - {name})
        return f"unknown field '{name}'" + (f": did you mean '{close}'?" if close else "")
    if fault["type"] == "missing":
        return f"'{name}' is missing"
    said: str = fault["msg"].replace("Input should", "should").removeprefix("Value error, ")
    if fault["type"] in ("model_type", "dict_type"):
        said = "should be keys with values"
    is_group = isinstance(fault["input"], dict | list)
    return said if is_group else f"{said}, not {json.dumps(fault['input'], default=str)}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the name that was meant, or all that there are, as the end of a message."""
    names = list(known)
    close = nearest_name(name, names)
    if close is not None:
        return f": did you mean '{close}'?"
    return f": there is {', '.join(names)}" if names else ""
