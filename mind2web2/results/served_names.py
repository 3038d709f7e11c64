"""Which judge a served name belongs to, where two judges shared the work; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from mind2web2.llm_client.settings import is_version_of
from mind2web2.results.scored_answer import ScoredAnswer


@dataclass(frozen=True, slots=True)
class ServedNames:
    """Models that servers reported, with how many answers each has judged.

    Args:
        judge: of the judge that has the last word.
        first: of the one that is asked before it.
        either: of one of both, it is not known which; each may have one.
    """

    judge: Counter[str] = field(default_factory=Counter)
    first: Counter[str] = field(default_factory=Counter)
    either: Counter[str] = field(default_factory=Counter)


def served_names(answers: Iterable[ScoredAnswer]) -> ServedNames:
    """Divide the served names of answers among their judges.

    Results of earlier versions record the names of both judges together. A name that is the first
    judge's model, or a dated version of it, is the first judge's. A name like neither model is that
    of the judge without a name of its own: the server of the other reports the model that it was
    asked for.
    """
    found = ServedNames()
    for answer in answers:
        first = answer.facts.first
        if answer.facts.first_served is not None:
            found.judge.update(answer.facts.served)
            found.first.update(answer.facts.first_served)
            continue
        for name in answer.facts.served:
            # The backend's version stands behind the model.
            model = name.partition(" (")[0]
            if first is None or is_version_of(model, answer.judge_model or ""):
                found.judge[name] += 1
            elif is_version_of(model, first.model):
                found.first[name] += 1
            else:
                found.either[name] += 1
    if found.first:
        return ServedNames(found.judge + found.either, found.first)
    if found.judge:
        return ServedNames(found.judge, found.either)
    return found
