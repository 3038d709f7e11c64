"""What is known of a prepared page beside its texts and images, as JSON and back."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any, get_type_hints

from pydantic import BaseModel, create_model

from mind2web2.prepared_page import PreparedPage
from mind2web2.prompts import HashedText

_APART = {"text", "images"}


def fields_of(page: PreparedPage) -> dict[str, Any]:
    """Return a page's fields but for its text and images."""
    given = {field.name: getattr(page, field.name) for field in fields(page) if field.name not in _APART}
    return _model()(**given).model_dump(mode="json")


def page_from(raw: object, text: HashedText, images: tuple[HashedText, ...]) -> PreparedPage:
    """Return the page with these fields."""
    known = _model().model_validate(raw)
    given = {name: getattr(known, name) for name in _model().model_fields}
    return PreparedPage(**given, text=text, images=images)


@cache
def _model() -> type[BaseModel]:
    """Return a model of the page's own fields, so that none that is added is left behind."""
    hints = get_type_hints(PreparedPage)
    kept: dict[str, Any] = {field.name: (hints[field.name], ...) for field in fields(PreparedPage)}
    return create_model("PageFields", **{name: kind for name, kind in kept.items() if name not in _APART})
