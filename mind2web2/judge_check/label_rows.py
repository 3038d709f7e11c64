"""A label as a row of JSON (docs/trust.md).

It has a claim, the page or pages, and whether they support it.
"""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Source(BaseModel):
    """A page that a claim is held against.

    Args:
        url: its address; without text and image the page is captured.
        image: the file of its screenshot, beside the file of the labels.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    text: str | None = Field(default=None, min_length=1)
    url: str | None = Field(default=None, min_length=1)
    image: str | None = Field(default=None, min_length=1)

    @property
    def is_given(self) -> bool:
        """Tell whether the page needs no capture."""
        return self.text is not None or self.image is not None


class OutsideLabel(Source):
    """One row, with a page, several in ``pages``, or none for a claim about the answer.

    Args:
        label: whether one of the pages supports the claim.
        question: what was asked when the claim was made.
        response: the answer that the claim is from.
        instruction: of the eval script that made the claim.
    """

    claim: str = Field(min_length=1)
    label: bool
    id: str | None = None
    question: str | None = None
    response: str | None = None
    instruction: str | None = None
    category: str = "labels"
    pages: tuple[Source, ...] = ()

    @model_validator(mode="after")
    def _has_sources(self) -> Self:
        own = (self.text, self.url, self.image)
        if self.pages and any(own):
            raise ValueError("write text, url and image in each of pages alone")
        if not self.pages and not any(own) and self.response is None:
            raise ValueError("text, url, image or pages missing")
        if len({source.is_given for source in self.sources}) > 1:
            raise ValueError("give text or image of all pages, or of none")
        return self

    @property
    def sources(self) -> tuple[Source, ...]:
        """Return the pages."""
        has_own = self.text or self.url or self.image
        return (self,) if has_own else self.pages
