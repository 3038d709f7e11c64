"""The faults of a run, as a pure function of a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

from faults.example import Manner
from servers.faulty_replies import DECLINES, FINAL, Fault
from servers.recorded_replies import Question

_ORDINARY = [fault for fault in Fault if fault not in FINAL]
_OUTAGES = (
    Fault.UNAVAILABLE,
    Fault.SERVER_ERROR,
    Fault.TOO_FAST,
    Fault.DROP_BEFORE,
    Fault.RESET_BEFORE,
)
_SHARES = (0.03, 0.06, 0.1, 0.2, 0.35, 0.6)
# A model may refuse out of a whim once, on the first to fourth request about a question.
_TURNS = 4


@dataclass(frozen=True)
class Schedule:
    """The fault of each request; the same seed gives the same faults to the same questions.

    Args:
        share: of the requests that go wrong.
        faults: what these meet, any of them.
        outage: requests by number that meet nothing but ``outage_fault``.
        end: from ``end_from`` on each request meets this: a revoked key, a model that is gone.
        manner: how the run goes about it.
    """

    seed: int
    share: float
    faults: tuple[Fault, ...]
    outage: range
    outage_fault: Fault
    end: Fault | None
    end_from: int
    manner: Manner

    def __call__(self, number: int, question: Question, asked_before: int) -> Fault | None:
        """Return what a request meets."""
        if self.end is not None and number >= self.end_from:
            return self.end
        if number in self.outage:
            return self.outage_fault
        chance = random.Random(f"{self.seed} {asked_before} {question}")
        if chance.random() >= self.share:
            return None
        fault = chance.choice(self.faults)
        return None if fault in DECLINES and asked_before != self._whim(question) else fault

    def _whim(self, question: Question) -> int:
        """Return the one request about a question that may be declined.

        A judge that declines twice means it.
        """
        return random.Random(f"{self.seed} whim {question}").randrange(_TURNS)


def schedule_of(seed: int) -> Schedule:
    """Return the schedule of a seed."""
    chance = random.Random(seed)
    faults = tuple(chance.sample(_ORDINARY, chance.choice((1, 3, 8, len(_ORDINARY)))))
    outage_from, outage_length = chance.randrange(150), chance.randrange(5, 120)
    has_outage, has_end = chance.random() < 0.25, chance.random() < 0.3
    return Schedule(
        seed=seed,
        share=chance.choice(_SHARES),
        faults=faults,
        outage=range(outage_from, outage_from + outage_length * has_outage),
        outage_fault=chance.choice(_OUTAGES),
        end=chance.choice(sorted(FINAL)) if has_end else None,
        end_from=chance.randrange(200),
        manner=Manner(
            chance.choice(("values", "gates")),
            requests_at_once=chance.choice((1, 4, 30, 30)),
            answers_at_once=chance.choice((1, 3)),
        ),
    )
