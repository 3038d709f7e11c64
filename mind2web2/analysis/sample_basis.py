"""The inputs of all answers of a sample.

By them a corrected score ends where one of the inputs changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from pydantic import BaseModel, ConfigDict

from mind2web2.results.provenance import Provenance
from mind2web2.utils.text import counted

# Characters of a digest, which only has to distinguish two texts of one answer.
_DIGEST_CHARS = 16
# A task and an answer, the latter without ``.md``.
AnswerName = tuple[str, str]


class AnswerBasis(BaseModel):
    """Digests of what one answer's result was judged from.

    Args:
        settings: of prompts and default settings.
        pages: by address.
    """

    model_config = ConfigDict(frozen=True)

    answer: str
    script: str
    settings: str
    pages: Mapping[str, str]

    @classmethod
    def of(cls, made_from: Provenance | None) -> AnswerBasis | None:
        """Return the basis of a result, ``None`` where it records none."""
        if made_from is None:
            return None
        return cls(
            answer=made_from.answer_sha256[:_DIGEST_CHARS],
            script=made_from.script_sha256[:_DIGEST_CHARS],
            settings=made_from.settings_sha256[:_DIGEST_CHARS],
            pages={
                url: sha256[:_DIGEST_CHARS]
                for url, sha256 in made_from.pages.items()
                if sha256 is not None
            },
        )


# An empty answer is the same for every judge.
NO_ANSWER = AnswerBasis(answer="", script="", settings="", pages={})


def difference(one: AnswerBasis | None, other: AnswerBasis | None) -> str | None:
    """Return what two results were not judged from alike, ``None`` where all is the same.

    Judges may look at different pages. Only pages that both have looked at are compared.
    """
    if one is None or other is None:
        return "not recorded"
    if one.answer != other.answer:
        return "another text of the answer"
    if one.script != other.script:
        return "another script"
    if one.settings != other.settings:
        return "other prompts or default settings"
    shared = one.pages.keys() & other.pages.keys()
    if any(one.pages[url] != other.pages[url] for url in shared):
        return "another page"
    return None


class SampledFrom(BaseModel):
    """All answers that a sample speaks for.

    Args:
        order: in which the sample takes them.
        basis: of each.
    """

    model_config = ConfigDict(frozen=True)

    order: tuple[AnswerName, ...]
    basis: tuple[AnswerBasis | None, ...]

    def describe_changes(self, now: Mapping[AnswerName, AnswerBasis | None]) -> str | None:
        """Return what has changed at these answers since the sample was drawn.

        The result is ``None`` where nothing has changed.
        """
        before = dict(zip(self.order, self.basis, strict=True))
        later = now.keys() - set(self.order)
        if later:
            outside = f"{counted(len(later), 'answer')} of {len(now)}"
            return f"{outside} came after the sample or were outside of it"
        changed = ((name, difference(before[name], basis)) for name, basis in now.items())
        return listed_differences(changed, len(now))


def listed_differences(
    differences: Iterable[tuple[AnswerName, str | None]], total: int
) -> str | None:
    """Return in words how many answers differ and in what, ``None`` where none does."""
    differing = {name: cause for name, cause in differences if cause is not None}
    if not differing:
        return None
    causes = Counter(differing.values())
    listed = ", ".join(f"{cause}: {count}" for cause, count in causes.most_common())
    first = "/".join(min(differing))
    return (
        f"{len(differing)} of {counted(total, 'answer')} were judged on other premises ({listed}), "
        f"such as {first}"
    )
