"""The toolkit's own templates of judges' replies."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel

from mind2web2.utils.api_misuse import script_api


@script_api
class BinaryEvalResult(BaseModel):
    """A judge's verdict on one claim, and the passage that decides it."""

    reasoning: str
    result: bool
    # A client of a script's own gives the two published fields; a verdict without a quote counts as
    # well.
    quote: str = ""
    dispensable_properties: ClassVar[frozenset[str]] = frozenset({"quote"})


class BlindReading(BaseModel):
    """A value that a judge read from a page without the claimed one, and the passage that states it."""  # noqa: W505

    value: str | None
    quote: str = ""
    dispensable_properties: ClassVar[frozenset[str]] = frozenset({"quote"})


# The forms that the toolkit asks judges to fill, by their names.
OWN_TEMPLATES: dict[str, type[BaseModel]] = {
    template.__name__: template for template in (BinaryEvalResult, BlindReading)
}
