"""An answer of a rehearsal.

It has its text, the values that a judge reads from it, and the claims that hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel

from mind2web2.plugin import (
    AskedClaim,
    AskedForm,
    Choices,
    FieldShape,
)
from mind2web2_authoring.other_values import change_values

_MOST_FORMS = 40
# A claim with the pages on which it is judged.
ClaimOnPages = tuple[str, tuple[str, ...]]


def claim_on_pages(asked: AskedClaim) -> ClaimOnPages:
    """Return a claim with its pages."""
    return asked.verification.claim, tuple(asked.urls)


@dataclass
class Answer:
    """An answer, and the replies to a script's questions about it.

    Args:
        text: the answer as the script gets it.
        given: the author's values, by extraction or by field.
        choices: how other values are made up.
        values: what the extractions have given, by extraction; made up as they are asked for.
        templates: of these extractions.
        truth: the claims that hold; ``None`` if all do.
        believes: a claim that is judged from the answer alone holds.
        is_empty: the extractions find nothing.
        page_is_there: tells whether a page is there.
    """

    text: str
    given: Mapping[str, Any] = field(default_factory=dict)
    choices: Choices = field(default_factory=Choices)
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    templates: dict[str, type[BaseModel]] = field(default_factory=dict)
    truth: frozenset[ClaimOnPages] | None = None
    believes: bool = False
    is_empty: bool = False
    page_is_there: Callable[[str], bool] = lambda _url: True
    _prompts: dict[str, list[str]] = field(default_factory=dict)

    def holds(self, claim: AskedClaim) -> bool:
        """Tell whether a claim is supported."""
        if self.believes and not claim.urls:
            return True
        if not self.has_pages_of(claim):
            return False
        return self.truth is None or claim_on_pages(claim) in self.truth

    def has_pages_of(self, claim: AskedClaim) -> bool:
        """Tell whether one of a claim's pages is there, or it needs none."""
        return not claim.urls or any(map(self.page_is_there, claim.urls))

    def has_page(self, url: str) -> bool:
        """Tell whether a page is there."""
        return self.page_is_there(url)

    def fill(self, form: AskedForm, template: type[BaseModel]) -> dict[str, Any]:
        """Return the values of an extraction."""
        key = self._key(form)
        # A script may ask for more until there is nothing.
        if (self.is_empty and form.url is None) or len(self.values) >= _MOST_FORMS:
            self.values[key] = {}
        if key not in self.values:
            self.values[key] = self._values(key, form, template)
        self.templates[key] = template
        return self.values[key]

    def _key(self, form: AskedForm) -> str:
        """Return the name of an extraction.

        One that is asked for with another prompt gets a number.
        """
        if form.url is not None:
            return f"{form.name} @ {form.url}"
        prompts = self._prompts.setdefault(form.name, [])
        if form.prompt not in prompts:
            prompts.append(form.prompt)
        number = prompts.index(form.prompt) + 1
        return form.name if number == 1 else f"{form.name} {number}"

    def _values(self, key: str, form: AskedForm, template: type[BaseModel]) -> dict[str, Any]:
        if self.given:
            own = own_values(self.given, form.name)
            return {name: own[name] for name in _keys(template) if name in own}
        values = self.choices.made_up(template, key, len(self.values))
        if form.url is not None:
            # A page says the same about an item as the answer that cites it.
            for item in _items_that_cite(form.url, list(self.values.values())):
                values |= {name: item[name] for name in values if name in item}
        return values

    def fields(self) -> Iterator[tuple[str, FieldShape]]:
        """Yield the fields that were read from the answer, with their extractions."""
        for key, template in self.templates.items():
            if " @ " not in key:
                for shape in FieldShape.all_of(template):
                    yield key, shape

    def variant(self, **other: Any) -> Answer:
        """Return another answer with the same values, of which some parts differ."""
        return replace(self, values=dict(self.values), templates={}, _prompts={}, **other)

    def with_field(
        self, key: str, shape: FieldShape, change: Callable[[Any, int], Any], **other: Any
    ) -> Answer:
        """Return a variant with another value of a field, in all items."""
        result = self.variant(**other)
        result.values[key] = change_values(self.values[key], shape.path, change)
        return result


def own_values(given: Mapping[str, Any], extraction: str) -> dict[str, Any]:
    """Return the author's values for an extraction: those under its name, or all."""
    own = given.get(extraction)
    return own if isinstance(own, dict) else dict(given)


def _keys(template: type[BaseModel]) -> Iterator[str]:
    for name, info in template.model_fields.items():
        yield info.alias or name


def _items_that_cite(url: str, parts: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield the groups of values that hold an address."""
    while parts:
        part = parts.pop()
        if isinstance(part, list):
            parts += part
        elif isinstance(part, dict):
            held = list(part.values())
            if url in held or any(isinstance(each, list) and url in each for each in held):
                yield part
            parts += held
