"""Made-up values for the templates of extractions; pure."""

from __future__ import annotations

import enum
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from mind2web2.verification.stand_ins import empty_instance, plain_type

Kind = Literal["text", "number", "flag", "choice", "address", "list", "other"]
# Keys that lead to a value; ITEM stands for every item of a list.
Path = tuple[str, ...]
ITEM = "*"
# The values of an extraction by field, as JSON has them.
Values = dict[str, Any]

DEFAULT_ITEMS = 3
_MAX_DEPTH = 6
_WORDS = [
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
]
_ENDINGS = ("", "ham", "ton", "by", "field", "wick")
_LINKS = ("url", "link", "source", "citation", "reference", "website", "href")
_NUMBERS = (("year", 2019), ("rating", 4), ("percent", 40), ("lat", 40), ("lon", 40))
_FIRST_DAY = date(2024, 5, 17)


@dataclass(frozen=True)
class FieldShape:
    """A field of a template.

    Args:
        choices: the values that it takes, where these are listed.
        template: the name of the class that has it.
    """

    path: Path
    kind: Kind
    choices: tuple[Any, ...] = ()
    template: str = ""

    @property
    def name(self) -> str:
        """Return the field's own name."""
        return next(part for part in reversed(self.path) if part != ITEM)

    @property
    def in_words(self) -> str:
        """Return the path as rubric files write it."""
        return ".".join(part for part in self.path if part != ITEM)

    @classmethod
    def all_of(cls, template: type[BaseModel]) -> Iterator[FieldShape]:
        """Yield the fields of a template; a list of groups comes before the fields of its items."""
        return _shapes_of(template, ())


def _shapes_of(template: type[BaseModel], above: Path) -> Iterator[FieldShape]:
    for name, info in template.model_fields.items():
        path = (*above, info.alias or name)
        inner, is_list, is_group = _parts(info.annotation)
        if is_group and len(path) < _MAX_DEPTH:
            if is_list:
                yield FieldShape(path, "list", template=template.__name__)
            yield from _shapes_of(inner, (*path, ITEM) if is_list else path)
        else:
            yield FieldShape(path, _kind(inner, name), _choices(inner), template.__name__)


def _parts(annotation: Any) -> tuple[Any, bool, bool]:
    """Return the type of a field or of its items, if it is a list, and if it holds groups."""
    plain = _plain(annotation)
    is_list = (get_origin(plain) or plain) in (list, tuple, set, frozenset)
    inner = _inner(plain) if is_list else plain
    return inner, is_list, isinstance(inner, type) and issubclass(inner, BaseModel)


def _plain(annotation: Any) -> Any:
    """Return a type without ``None``, names and notes."""
    plain = plain_type(annotation)
    if get_origin(plain) in (Union, types.UnionType):
        choices = [each for each in get_args(plain) if each is not type(None)]
        return _plain(choices[0]) if choices else None
    return plain


def _inner(annotation: Any) -> Any:
    arguments = get_args(annotation)
    return _plain(arguments[0]) if arguments else str


def _choices(kind: Any) -> tuple[Any, ...]:
    if get_origin(kind) is Literal:
        return get_args(kind)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return tuple(each.value for each in kind)
    return ()


def _kind(kind: Any, name: str) -> Kind:
    if _choices(kind):
        return "choice"
    if kind is bool:
        return "flag"
    if kind in (int, float):
        return "number"
    if (get_origin(kind) or kind) is dict:
        return "other"
    return "address" if any(hint in name.lower() for hint in _LINKS) else "text"


@dataclass(frozen=True)
class Choices:
    """How values are made up where nothing else is said.

    Args:
        values: by extraction and path, one for each item in turn; ``None`` for a made-up one.
        kinds: by the kind of field, one for each item in turn.
        counts: items of each list, by extraction and path.
        count: items of the other lists.
    """

    values: Mapping[tuple[str, Path], tuple[Any, ...]] = field(default_factory=dict)
    kinds: Mapping[Kind, tuple[Any, ...]] = field(default_factory=dict)
    counts: Mapping[tuple[str, Path], int] = field(default_factory=dict)
    count: int = DEFAULT_ITEMS

    def made_up(self, template: type[BaseModel], extraction: str, order: int) -> Values:
        """Return made-up values of a template; ``order`` is that of the extraction in its run."""
        return _group(template, (), _Place(extraction, order), self)


@dataclass(frozen=True)
class _Place:
    """Where a value stands: which extraction, which list in it, which item."""

    extraction: str
    order: int
    index: int = 0

    @property
    def word(self) -> str:
        """Return a word that stands in the texts of no other item and no other extraction."""
        place = self.order * 7 + self.index
        ending = _ENDINGS[place // len(_WORDS) % len(_ENDINGS)]
        return _WORDS[place % len(_WORDS)] + ending


def _group(template: type[BaseModel], above: Path, place: _Place, choices: Choices) -> Values:
    values: Values = {}
    for name, info in template.model_fields.items():
        key = info.alias or name
        path = (*above, key)
        inner, is_list, is_group = _parts(info.annotation)
        if is_group and len(path) >= _MAX_DEPTH:
            values[key] = [] if is_list else None
        elif is_group and is_list:
            number = choices.counts.get((place.extraction, path), choices.count)
            places = [_Place(place.extraction, place.order, index) for index in range(number)]
            values[key] = [_group(inner, (*path, ITEM), each, choices) for each in places]
        elif is_group:
            values[key] = _group(inner, path, place, choices)
        else:
            shape = FieldShape(path, _kind(inner, name), _choices(inner))
            values[key] = _single(shape, is_list, place, choices)
    return values


def _single(shape: FieldShape, is_list: bool, place: _Place, choices: Choices) -> Any:
    given = choices.values.get((place.extraction, shape.path)) or choices.kinds.get(shape.kind)
    if not is_list:
        return _value(shape, place, given)
    number = choices.counts.get((place.extraction, shape.path))
    if number is None:
        if given and shape.kind != "address":
            return [each for each in given if each is not None]
        # One address is enough; other lists of texts have as many as lists of groups.
        number = choices.count if shape.kind == "text" else 1
    places = [_Place(place.extraction, place.order, place.index + each) for each in range(number)]
    return [_value(shape, each, given) for each in places]


def _value(shape: FieldShape, place: _Place, given: Sequence[Any] | None) -> Any:
    chosen = given[place.index % len(given)] if given else None
    if chosen is not None:
        return chosen
    if shape.choices:
        return shape.choices[0]
    fixed: dict[Kind, Any] = {"flag": True, "other": {}}
    if shape.kind in fixed:
        return fixed[shape.kind]
    name = shape.name.lower()
    if shape.kind == "number":
        return next((number for hint, number in _NUMBERS if hint in name), 3) + place.index
    if shape.kind == "address":
        return f"https://{place.word.lower()}.example/{'/'.join(shape.in_words.split('.'))}"
    return _text(name, place)


def _text(name: str, place: _Place) -> str:
    texts = (
        ("year", str(2019 - place.index)),
        *((hint, str(_FIRST_DAY + timedelta(place.index))) for hint in ("date", "day")),
        ("time", f"{10 + place.index % 12}:30"),
        ("price", str(42 + place.index)),
        ("cost", str(42 + place.index)),
        ("phone", f"+1 202 555 01{43 + place.index}"),
        ("email", f"{place.word.lower()}@rehearsal.example"),
    )
    text = next((text for hint, text in texts if hint in name), None)
    return text or f"{name.replace('_', ' ')} {place.word}"


def fill_template(template: type[BaseModel], values: Values) -> BaseModel:
    """Return the template with these values.

    Missing values are null, and values that do not fit are empty.
    """
    empty = empty_instance(template)
    given = {}
    for name, info in template.model_fields.items():
        key = info.alias or name
        given[key] = values.get(key, values.get(name, getattr(empty, name, None)))
    try:
        return template.model_validate(given)
    except ValidationError as error:
        unfit = {fault["loc"][0] for fault in error.errors() if fault["loc"]}
        fit = {key: value for key, value in given.items() if key not in unfit}
        # A judge has to give a number where the class takes nothing else.
        fit |= dict.fromkeys(_numbers_of(template) & unfit, 0)
        try:
            return template.model_validate(fit)
        except ValidationError:
            return template.model_construct(**(vars(empty) | fit))


def _numbers_of(template: type[BaseModel]) -> set[str]:
    fields = template.model_fields.items()
    return {info.alias or name for name, info in fields if info.annotation in (int, float)}
