"""A pydantic template as a JSON schema: as it is, and in the strict subset that schema modes take."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

JsonSchema = dict[str, Any]

# What strict modes take. Other keywords (defaults, string lengths) only advise: pydantic checks them.
_STRICT_KEYWORDS = frozenset(
    {
        "title",
        "description",
        "type",
        "enum",
        "const",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
    }
    | {"multipleOf", "minItems", "maxItems"}
)
_STRICT_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)

# What strict modes cannot say, and what may not be dropped either.
_STRUCTURE_KEYWORDS = frozenset({"patternProperties", "prefixItems", "not", "if", "allOf", "contains"})
_TYPED_BY = ("type", "enum", "const", "anyOf", "oneOf", "$ref")


class NotStrictError(Exception):
    """A schema cannot be said in the strict subset; stays inside this module."""


@dataclass(frozen=True, slots=True)
class TemplateSchema:
    """What a model is told of a template.

    Args:
        name: the template's name as providers allow it.
        full: the schema as pydantic gives it.
        strict: the same in the strict subset, or ``None`` where that cannot say it (free-form dicts).
        is_object: whether the template is filled by a JSON object, as modes and tools require.
    """

    name: str
    full: JsonSchema
    strict: JsonSchema | None
    is_object: bool


@functools.lru_cache(maxsize=256)
def schema_of(template: type[BaseModel]) -> TemplateSchema:
    """Return what a model is told of the template."""
    full = template.model_json_schema()
    return TemplateSchema(
        name=re.sub(r"[^a-zA-Z0-9_-]", "_", template.__name__)[:64],
        full=full,
        strict=_strict_or_none(full),
        is_object=_resolved(full, full).get("type") == "object",
    )


def _strict_or_none(full: JsonSchema) -> JsonSchema | None:
    root = _resolved(full, full)
    if root.get("type") != "object":
        return None
    try:
        strict = _strict(root)
        if "$defs" in full:
            strict["$defs"] = {name: _strict(schema) for name, schema in full["$defs"].items()}
    except NotStrictError:
        return None
    return strict


def _resolved(schema: JsonSchema, root: JsonSchema) -> JsonSchema:
    """Follow the reference that pydantic puts at the root of a recursive template."""
    reference = schema.get("$ref", "")
    if not reference.startswith("#/$defs/"):
        return schema
    resolved: JsonSchema = root["$defs"][reference.removeprefix("#/$defs/")]
    return resolved


def _strict(schema: Mapping[str, Any]) -> JsonSchema:
    if not any(keyword in schema for keyword in _TYPED_BY) or not _STRUCTURE_KEYWORDS.isdisjoint(schema):
        raise NotStrictError
    strict = {keyword: value for keyword, value in schema.items() if keyword in _STRICT_KEYWORDS}
    if schema.get("format") in _STRICT_FORMATS:
        strict["format"] = schema["format"]
    # patterns with lookaheads (pydantic's Decimal, for one) are refused
    if "(?" not in schema.get("pattern", "(?"):
        strict["pattern"] = schema["pattern"]
    if schema.get("type") == "object":
        strict |= _strict_object(schema)
    if schema.get("type") == "array":
        strict["items"] = _strict(schema.get("items", {}))
    return strict | _strict_alternatives(schema)


def _strict_object(schema: Mapping[str, Any]) -> JsonSchema:
    if schema.get("additionalProperties", False) is not False:
        raise NotStrictError
    properties = schema.get("properties", {})
    return {
        "properties": {name: _strict(field) for name, field in properties.items()},
        "required": list(properties),
        "additionalProperties": False,
    }


def _strict_alternatives(schema: Mapping[str, Any]) -> JsonSchema:
    variants = schema.get("anyOf") or schema.get("oneOf")
    if variants:
        return {"anyOf": [_strict(variant) for variant in variants]}
    if "$ref" not in schema:
        return {}
    # a reference must stand alone, so that one with a description becomes the only alternative
    reference = {"$ref": schema["$ref"]}
    has_siblings = any(keyword in schema for keyword in _STRICT_KEYWORDS)
    return {"anyOf": [reference]} if has_siblings else reference
