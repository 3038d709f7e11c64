"""Plausible values for the templates of extractions, of a given number of items and with given gaps; pure."""

from __future__ import annotations

import enum
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from mind2web2.verification.stand_ins import empty_instance

MOST_ITEMS = 12
_WORDS = (
    "Alder",
    "Birch",
    "Cedar",
    "Dogwood",
    "Elm",
    "Fir",
    "Gumtree",
    "Hazel",
    "Ironwood",
    "Juniper",
    "Kapok",
    "Larch",
    "Maple",
    "Nutmeg",
)
# So that items of several lists differ.
_ENDINGS = ("", "ham", "ton", "by", "field", "wick")
_LINKS = ("url", "link", "source", "citation", "reference", "website", "href")
_TEXTS = (
    ("year", "2019"),
    ("date", "2024-05-17"),
    ("time", "10:30"),
    ("price", "42"),
    ("cost", "42"),
    ("phone", "+1 202 555 0143"),
    ("email", "office@rehearsal.example"),
)
_NUMBERS = (("year", 2019), ("rating", 4), ("percent", 40), ("lat", 40), ("lon", 40))


@dataclass(frozen=True)
class Filling:
    """How templates are filled.

    Args:
        counts: items of each list, by its path; others have ``default_count``.
        empty: paths of fields that stay empty, such as ``answer.walks.name``.
        given: values of the author's by path, which come first.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    default_count: int = 3
    empty: frozenset[str] = frozenset()
    given: Mapping[str, Any] = field(default_factory=dict)


def filled(template: type[BaseModel], extraction: str, filling: Filling) -> BaseModel:
    """Return a template with plausible values; fields that no value fits stay empty."""
    if extraction in filling.empty:
        return empty_instance(template)
    values = _Values(filling, list(lists_of(template, extraction))).fields(
        template, extraction, _Place()
    )
    try:
        return template.model_validate(values)
    except ValidationError as error:
        unfit = {str(fault["loc"][0]) for fault in error.errors() if fault["loc"]}
        fit = {name: value for name, value in values.items() if name not in unfit}
        return template.model_construct(**(vars(empty_instance(template)) | fit))


def fields_of(template: type[BaseModel], path: str, depth: int = 0) -> Iterator[str]:
    """Yield the paths of all fields that hold values, those of lists' items once."""
    for name, info in template.model_fields.items():
        model = _model_in(info.annotation)
        if model is None or depth > 6:
            yield f"{path}.{name}"
        else:
            yield from fields_of(model, f"{path}.{name}", depth + 1)


def lists_of(template: type[BaseModel], path: str, depth: int = 0) -> Iterator[str]:
    """Yield the paths of all lists of groups."""
    for name, info in template.model_fields.items():
        model = _model_in(info.annotation)
        if model is None or depth > 6:
            continue
        if _is_list(_plain(info.annotation)):
            yield f"{path}.{name}"
        yield from lists_of(model, f"{path}.{name}", depth + 1)


def word_of(list_number: int, index: int) -> str:
    """Return the word that stands in all texts of a list's item, and in no other item's."""
    return _WORDS[index % len(_WORDS)] + _ENDINGS[list_number % len(_ENDINGS)]


def model_of(template: type[BaseModel], name: str) -> type[BaseModel] | None:
    """Return the group that a field holds, or holds a list of; ``None`` for a value."""
    return _model_in(template.model_fields[name].annotation)


@dataclass(frozen=True)
class _Place:
    word: str = "Quince"


def _plain(annotation: Any) -> Any:
    """Return a type without ``None`` and annotations."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        choices = [each for each in get_args(annotation) if each is not type(None)]
        return _plain(choices[0]) if choices else None
    if hasattr(annotation, "__metadata__"):
        return _plain(get_args(annotation)[0])
    return annotation


def _is_list(annotation: Any) -> bool:
    return (get_origin(annotation) or annotation) in (list, tuple, set, frozenset)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    plain = _plain(annotation)
    if _is_list(plain):
        arguments = get_args(plain)
        plain = _plain(arguments[0]) if arguments else None
    if isinstance(plain, type) and issubclass(plain, BaseModel):
        return plain
    return None


class _Values:
    def __init__(self, filling: Filling, lists: list[str]) -> None:
        self._filling = filling
        self._lists = lists

    def fields(
        self, template: type[BaseModel], path: str, place: _Place, depth: int = 0
    ) -> dict[str, Any]:
        """Return the values of a template's fields by name."""
        values = {}
        for name, info in template.model_fields.items():
            own = f"{path}.{name}"
            if own in self._filling.empty or depth > 6:
                value = None
            elif own in self._filling.given:
                value = self._filling.given[own]
            else:
                value = self._value(_plain(info.annotation), own, place, depth)
            # As a judge's reply has it: null where the field takes null.
            if value is not None or type(None) in get_args(info.annotation):
                values[info.alias or name] = value
        return empty_instance(template).model_dump(warnings=False) | values

    def _value(self, kind: Any, path: str, place: _Place, depth: int) -> Any:
        if _is_list(kind):
            return self._items(kind, path, place, depth)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return self.fields(kind, path, place, depth + 1)
        return _single(kind, path, place)

    def _items(self, kind: Any, path: str, place: _Place, depth: int) -> Any:
        arguments = get_args(kind)
        inner = _plain(arguments[0]) if arguments else str
        name = path.rpartition(".")[2].lower()
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            value = self._value(inner, path, place, depth)
            return [value] if _is_link(name) or value is None or depth else [value, f"{value} too"]
        count = self._filling.counts.get(path, self._filling.default_count)
        number = self._lists.index(path) if path in self._lists else 0
        places = [_Place(word_of(number, index)) for index in range(count)]
        return [self.fields(inner, path, each, depth + 1) for each in places]


def _single(kind: Any, path: str, place: _Place) -> Any:
    """Return a value of a type that holds no others."""
    name = path.rpartition(".")[2].lower()
    if get_origin(kind) is Literal:
        return get_args(kind)[0]
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return next(iter(kind))
    if kind is bool:
        return True
    if kind in (int, float):
        return next((number for hint, number in _NUMBERS if hint in name), 3)
    if (get_origin(kind) or kind) is dict:
        return {}
    return _text(path, place)


def _is_link(name: str) -> bool:
    return any(hint in name for hint in _LINKS)


def _text(path: str, place: _Place) -> str:
    name = path.rpartition(".")[2].lower()
    if _is_link(name):
        return f"https://{place.word.lower()}.example/{'/'.join(path.split('.')[1:])}"
    text = next((text for hint, text in _TEXTS if hint in name), None)
    if text is None:
        return f"{name.replace('_', ' ')} {place.word}"
    return text
