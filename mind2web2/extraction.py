"""What an extraction leaves behind: its record, and the empty template where there was nothing to read."""

from __future__ import annotations

import types
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo

from mind2web2.evidence import PageShown

Template = TypeVar("Template", bound=BaseModel)


class ExtractionRecord(BaseModel):
    """Where an extraction's value comes from, for the audit of a result.

    Args:
        url: the page read; ``None`` for the answer.
        page: what of it was shown.
        unavailable: why the page could not be had; the value is then empty.
        declined: why the judge declined the content; the value is then empty.
        judgment: the key that the judge's reply is stored under, where it is.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    url: str | None = None
    page: PageShown | None = None
    unavailable: str | None = None
    declined: str | None = None
    judgment: str | None = None


def empty_instance(template: type[Template]) -> Template:
    """Return the template with nothing in it, built without validation (contract.md, ``extract``).

    Defaults stand; required fields are ``None`` where optional, ``""`` for strings, empty for lists and
    dicts, nested templates empty in turn, and ``None`` for what has no empty value.
    """
    return template.model_construct(
        **{name: empty_value(field) for name, field in template.model_fields.items() if field.is_required()}
    )


def empty_value(field: FieldInfo) -> Any:
    """Return the empty value of a required field."""
    return _empty_of(field.annotation)


def _empty_of(annotation: Any) -> Any:
    origin = get_origin(annotation) or annotation
    if origin in (Union, types.UnionType):
        choices = get_args(annotation)
        return None if type(None) in choices else _empty_of(choices[0])
    if origin in (list, dict, set, tuple, str):
        return origin()
    if isinstance(origin, type) and issubclass(origin, BaseModel):
        return empty_instance(origin)
    return None
