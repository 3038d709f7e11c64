"""A template of a script's as the run has it: its schema, and somebody to ask whether a reply fills it."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, ClassVar

from pydantic import BaseModel, RootModel


class _ToldTemplate(RootModel[Any]):
    """Takes any JSON; the script's own class has the last word (``ChatRequest.check``)."""

    schema_text: ClassVar[str] = "{}"

    @classmethod
    def model_json_schema(cls, *_arguments: Any, **_keywords: Any) -> dict[str, Any]:
        """Return the schema of the script's class."""
        schema: dict[str, Any] = json.loads(cls.schema_text)
        return schema


def told_template(name: str, schema: object) -> type[BaseModel]:
    """Return what stands for a script's class of this name and schema, the same for the same."""
    return _made(name, json.dumps(schema))


@lru_cache(maxsize=256)
def _made(name: str, schema_text: str) -> type[BaseModel]:
    return type(name, (_ToldTemplate,), {"schema_text": schema_text, "__module__": __name__})
