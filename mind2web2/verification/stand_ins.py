"""Values in the place of extractions and verdicts.

They are empty, or stand-ins for what is not known yet.
"""

from __future__ import annotations

import datetime
import enum
import re
import types
from collections import Counter, OrderedDict, abc, defaultdict, deque
from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import AnyUrl, BaseModel

# Nobody else writes these; a question that has one in it is not asked.
_MARK = "zqstandinqz"
_NUMBER = 917_364_528
_YEAR = 8461
# A list of stand-ins has one, and an inner list at this depth has none.
_MAX_LEVELS = 3
_COLLECTIONS = (list, dict, set, frozenset, tuple, deque, OrderedDict, defaultdict, Counter)
# Pydantic fills abstract types with these.
_FILLED_WITH: dict[Any, type] = {
    **dict.fromkeys((abc.Sequence, abc.MutableSequence), list),
    **dict.fromkeys((abc.Iterable, abc.Generator), list),
    **dict.fromkeys((abc.Mapping, abc.MutableMapping), dict),
    abc.Set: frozenset,
    abc.MutableSet: set,
}
# Numbers near the stand-in count, too: a script may add to it.
_MARKS = re.compile(rf"{_MARK}|917[,_]?364[,_]?5\d\d|(?<!\d){_YEAR}(?!\d)", re.IGNORECASE)

Template = TypeVar("Template", bound=BaseModel)


def empty_instance(template: type[Template]) -> Template:
    """Return the template with nothing in it, built without validation.

    See ``extract`` in eval-scripts.md.

    Defaults stand; required fields are ``None`` where optional, ``""`` for strings, empty for lists
    and dicts, abstract ones as well, nested templates empty in turn, and ``None`` for types without
    an empty value.
    """
    return template.model_construct(
        **{
            name: _empty_of(field.annotation)
            for name, field in template.model_fields.items()
            if field.is_required()
        }
    )


def plain_type(annotation: Any) -> Any:
    """Return a field's type without names and notes, ``list[str]`` for ``Sequence[str]``."""
    # ``NewType`` and type aliases have the type that they name there.
    plain = getattr(annotation, "__supertype__", getattr(annotation, "__value__", annotation))
    if get_origin(plain) is Annotated:
        plain = get_args(plain)[0]
    if plain is not annotation:
        return plain_type(plain)
    filled_with: Any = _FILLED_WITH.get(get_origin(plain) or plain)
    return plain if filled_with is None else filled_with[get_args(plain)]


def _empty_of(annotation: Any) -> Any:
    plain = plain_type(annotation)
    origin = get_origin(plain) or plain
    if origin in (Union, types.UnionType):
        choices = get_args(plain)
        return None if type(None) in choices else _empty_of(choices[0])
    if origin in (str, *_COLLECTIONS):
        return origin()
    if isinstance(origin, type) and issubclass(origin, BaseModel):
        return empty_instance(origin)
    return None


def has_mark(text: str) -> bool:
    """Tell whether a text is made from a stand-in."""
    return _MARKS.search(text) is not None


def marked_text(name: str) -> str:
    """Return the stand-in for a text."""
    return f"{_MARK} {name}"


def marked_instance(template: type[Template], depth: int = 0) -> Template:
    """Return the template filled with stand-ins.

    They are marked texts, addresses, numbers, dates and lists of one.
    """
    return template.model_construct(
        **{
            name: _mark_annotation(field.annotation, name, depth + 1)
            for name, field in template.model_fields.items()
        }
    )


class _Items(list[Any]):
    """A list of one stand-in, which is each of its items: nobody knows how many there are."""

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(index if isinstance(index, slice) else 0)


def _mark_annotation(annotation: Any, name: str, depth: int) -> Any:
    plain = plain_type(annotation)
    origin, choices = get_origin(plain) or plain, get_args(plain)
    if origin in (Union, types.UnionType):
        likely = _first_of(choices)
        is_empty = type(None) in choices and not _has_mark_of_its_own(likely)
        return None if is_empty else _mark_annotation(likely, name, depth)
    if origin is Literal:
        return choices[0]
    if origin in _COLLECTIONS:
        has_one = origin is list and choices and depth <= _MAX_LEVELS
        return _Items([_mark_annotation(choices[0], name, depth)]) if has_one else origin()
    return _marked_of_class(origin, name, depth) if isinstance(origin, type) else marked_text(name)


def _has_mark_of_its_own(kind: Any) -> bool:
    return plain_type(kind) in (str, int, float, AnyUrl, datetime.datetime, datetime.date)


def _first_of(choices: tuple[Any, ...]) -> Any:
    if str in choices:
        return str
    return next(choice for choice in choices if choice is not type(None))


def _marked_of_class(kind: type, name: str, depth: int) -> Any:
    if issubclass(kind, BaseModel):
        return marked_instance(kind, depth)
    if issubclass(kind, enum.Enum):
        return next(iter(kind), None)
    if issubclass(kind, str):
        is_address = any(part in name.lower() for part in ("url", "link"))
        return _address(name) if is_address else marked_text(name)
    for known, value in _marked_values(name):
        if issubclass(kind, known):
            return value
    return None


def _marked_values(name: str) -> Iterator[tuple[type, object]]:
    yield AnyUrl, AnyUrl(_address(name))
    yield bool, True
    yield int, _NUMBER
    yield float, float(_NUMBER)
    yield datetime.datetime, datetime.datetime(_YEAR, 1, 1, tzinfo=datetime.UTC)
    yield datetime.date, datetime.date(_YEAR, 1, 1)


def _address(name: str) -> str:
    return f"https://{_MARK}.invalid/{name}"
