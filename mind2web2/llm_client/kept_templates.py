"""Templates kept as they are when a script asks for an extraction, whatever becomes of the class later."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar
from weakref import WeakKeyDictionary, ref

from pydantic import BaseModel
from pydantic_core import SchemaValidator

Template = TypeVar("Template", bound=BaseModel)


class _KeptTemplate(BaseModel):
    """Stands for a template as it was: has its schema, and reads replies into instances of its class."""

    kept_class: ClassVar[ref[type[BaseModel]]]
    kept_schema: ClassVar[dict[str, Any]]
    kept_validator: ClassVar[SchemaValidator]

    @classmethod
    def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
        """Return the schema that the template had."""
        return cls.kept_schema

    @classmethod
    def model_validate_json(cls, json_data: Any, **_: Any) -> Any:
        """Return an instance of the template's own class."""
        return cls.kept_validator.validate_json(json_data)


# By the class. One that a script asks for again and again is kept once.
_kept: WeakKeyDictionary[type[BaseModel], type[_KeptTemplate]] = WeakKeyDictionary()


def kept(template: type[Template]) -> type[Template]:
    """Return a plain template as it is now: what becomes of its class later does not count."""
    schema = template.model_json_schema()
    validator = template.__pydantic_validator__
    known = _kept.get(template)
    if (
        known is None
        or known.kept_validator is not validator
        or known.kept_schema != schema
    ):
        members = {
            "__module__": __name__,
            "kept_class": ref(template),
            "kept_schema": schema,
            "kept_validator": validator,
        }
        known = type(template.__name__, (_KeptTemplate,), members)
        _kept[template] = known
    return known  # type: ignore[return-value]  # what it reads is of the template's class


def filled_class(template: type[BaseModel]) -> type[BaseModel]:
    """Return the class of which a template's values are: of a kept one, the script's own."""
    if issubclass(template, _KeptTemplate):
        return template.kept_class() or template
    return template
