"""Templates that are filled without any code of a script: when they are filled makes no difference to it.

Such a template is kept as it is when a script asks for an extraction (``llm_client/kept_templates.py``).
"""

from __future__ import annotations

import datetime
import decimal
import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import (
    Annotated,
    Any,
    Literal,
    Union,
    get_args,
    get_origin,
)

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

_VALUES = frozenset(
    {
        *(str, int, float, bool, bytes, None, type(None)),
        *(datetime.date, datetime.datetime, datetime.time, decimal.Decimal),
    }
)
_CONTAINERS = frozenset({list, dict, set, frozenset, tuple, Union, types.UnionType})
_LIBRARIES = ("pydantic.", "pydantic_core.", "annotated_types")
# Validators as metadata call functions of the script.
_FUNCTIONAL = "pydantic.functional_"
# Settings that call no function.
_PLAIN_SETTINGS = frozenset(
    {
        *("arbitrary_types_allowed", "extra", "frozen", "populate_by_name"),
        *("protected_namespaces", "str_strip_whitespace", "title"),
        *("use_enum_values", "validate_assignment", "validate_by_name"),
    }
)


class _Plain(BaseModel):
    """Shows what pydantic itself puts into the namespace of each template."""

    field: int = 0


_METHODS = frozenset(dir(BaseModel)) - vars(_Plain).keys()


def is_plain(template: type[BaseModel]) -> bool:
    """Tell whether no validator, serializer, hook or other function of a script runs when it is filled."""
    return _is_plain(template, set())


def _is_plain(template: type[BaseModel], seen: set[type]) -> bool:
    if template in seen:
        return True
    seen.add(template)
    return (
        type(template) is type(BaseModel)
        and all(_adds_nothing(kind) for kind in _own_classes(template))
        and template.__pydantic_decorators__ == _Plain.__pydantic_decorators__
        and template.model_config.keys() <= _PLAIN_SETTINGS
        and all(_is_plain_field(each, seen) for each in template.model_fields.values())
    )


def _own_classes(template: type[BaseModel]) -> Iterator[type]:
    """Return the classes of a template that are not of pydantic."""
    for kind in template.__mro__:
        if kind is not object and not kind.__module__.startswith(_LIBRARIES):
            yield kind


def _adds_nothing(kind: type) -> bool:
    """Tell whether a class replaces no method that filling and recording a template may call."""
    return not vars(kind).keys() & _METHODS


def _is_plain_field(field: FieldInfo, seen: set[type]) -> bool:
    factory = field.default_factory
    return (
        (factory is None or _is_plain_factory(factory, seen))
        and _is_plain_default(field.default, seen)
        and not callable(field.json_schema_extra)
        and all(map(_is_plain_metadata, field.metadata))
        and _is_plain_type(field.annotation, seen)
    )


def _is_plain_factory(factory: object, seen: set[type]) -> bool:
    """Tell whether a factory makes a value without a function of the script, and without an error."""
    if isinstance(factory, type) and issubclass(factory, BaseModel):
        has_all = not any(map(FieldInfo.is_required, factory.model_fields.values()))
        return has_all and _is_plain(factory, seen)
    return factory in _VALUES or factory in _CONTAINERS


def _is_plain_default(default: Any, seen: set[type]) -> bool:
    if isinstance(default, BaseModel):
        return _is_plain(type(default), seen) and _is_plain_value(vars(default))
    return default is PydanticUndefined or _is_plain_value(default)


def _is_plain_value(value: object) -> bool:
    """Tell whether comparing and copying a value call no function of the script."""
    if type(value) is dict:
        return all(map(_is_plain_value, (*value, *value.values())))
    if type(value) in (list, tuple, set, frozenset):
        return all(map(_is_plain_value, value))  # type: ignore[call-overload]  # a container, as checked above
    return type(value) in _VALUES


def _is_plain_metadata(constraint: object) -> bool:
    module = f"{type(constraint).__module__}."
    return (
        module.startswith(_LIBRARIES)
        and not module.startswith(_FUNCTIONAL)
        and _has_plain_parts(constraint)
    )


def _has_plain_parts(constraint: object) -> bool:
    """Tell whether a constraint has no function, as ``Predicate`` has, and no bound of a script's class."""
    if not is_dataclass(constraint) or isinstance(constraint, type):
        return True
    parts = (getattr(constraint, each.name) for each in fields(constraint))
    return all(map(_is_plain_value, parts))


def _is_plain_type(annotation: Any, seen: set[type]) -> bool:
    origin = get_origin(annotation)
    if origin is Annotated:
        kind, *metadata = get_args(annotation)
        return all(map(_is_plain_metadata, metadata)) and _is_plain_type(kind, seen)
    if origin in _CONTAINERS:
        parts = [part for part in get_args(annotation) if part is not ...]
        return all(_is_plain_type(part, seen) for part in parts)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _is_plain(annotation, seen)
    return (
        (origin is Literal and _is_plain_value(get_args(annotation)))
        or annotation is Any
        or annotation in (*_VALUES, *_CONTAINERS)
        or getattr(annotation, "__module__", None) == "pydantic.networks"
    )
