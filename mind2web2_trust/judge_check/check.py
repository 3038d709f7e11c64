"""A check of a judge: the labelled set, asked as in an evaluation.

The judge's quality follows from its replies.

Questions have the pages, prompts, votes and store of an evaluation. Figures are pure functions of
replies.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import chain, combinations
from statistics import fmean

from mind2web2.plugin import (
    AskedJudge,
    CheckRecord,
    Estimate,
    GivenPages,
    Mind2Web2Error,
    PairedTest,
)
from mind2web2_trust.judge_check.drawn_page import (
    can_be_drawn,
    screenshot,
)
from mind2web2_trust.judge_check.labelled_set import (
    LabelledClaim,
    LabelledForm,
    LabelledPage,
    LabelledSet,
)

# In the store, in place of a task.
SOURCE = "check-judge"
_LEVEL = 0.05


@dataclass(frozen=True)
class CaseOutcome:
    """A judge's reply to one case.

    Args:
        is_right: ``None`` where the judge failed, which says nothing about its verdicts.
        given: the verdict, or the values of the form.
    """

    case: LabelledClaim | LabelledForm
    is_right: bool | None
    given: bool | Mapping[str, object] | None = None
    declined: int = 0
    failure: str | None = None


@dataclass(frozen=True)
class JudgeCheck:
    """A judge's replies to the cases of the labelled set.

    Args:
        seconds: of this check, stored replies being free.
    """

    judge: AskedJudge
    labelled: LabelledSet
    outcomes: tuple[CaseOutcome, ...]
    seconds: float

    @property
    def name(self) -> str:
        """Return the model."""
        return self.judge.identity.model


@dataclass(frozen=True)
class Checking:
    """How the set is put to judges.

    Args:
        votes: of each claim at most; a vote ends as soon as it is settled.
    """

    labelled: LabelledSet
    votes: int
    on_reply: Callable[[], object] = lambda: None

    async def of(self, judge: AskedJudge) -> JudgeCheck:
        """Ask a judge all cases at once, within the limit.

        Raises:
            JudgmentStoreError: replies could not be stored.
        """
        started = time.monotonic()
        outcomes = await judge.ask_all(self._outcome(judge, case) for case in self.labelled.cases)
        return JudgeCheck(judge, self.labelled, tuple(outcomes), time.monotonic() - started)

    async def _outcome(self, judge: AskedJudge, case: LabelledClaim | LabelledForm) -> CaseOutcome:
        try:
            if isinstance(case, LabelledClaim):
                return await self._claim(judge, case)
            return await self._form(judge, case)
        except Mind2Web2Error as error:
            return CaseOutcome(case, None, failure=str(error))
        finally:
            self.on_reply()

    async def _claim(self, judge: AskedJudge, case: LabelledClaim) -> CaseOutcome:
        question = judge.question(case.id, case.task, case.answer, self.pages, self.votes)
        supported, evidence = await question.verify(
            case.question, case.urls, instruction=case.instruction
        )
        votes = chain.from_iterable(evidence.vote_groups())
        declined = sum(vote.declined is not None for vote in votes)
        return CaseOutcome(case, supported is case.right, supported, declined)

    async def _form(self, judge: AskedJudge, case: LabelledForm) -> CaseOutcome:
        question = judge.question(case.id, case.task, case.answer, self.pages, self.votes)
        values, record = await question.extract(case.question, case.template(), case.url)
        declined = int(record.declined is not None)
        return CaseOutcome(case, case.is_filled_rightly(values), values.model_dump(), declined)

    @cached_property
    def pages(self) -> GivenPages:
        """The pages of the set, prepared once for all judges."""
        is_drawn = not self.labelled.is_outside
        return labelled_pages(self.labelled.pages, is_drawn=is_drawn)


def labelled_pages(pages: Mapping[str, LabelledPage], *, is_drawn: bool = True) -> GivenPages:
    """Return the pages of a set; a screenshot is drawn when it is read."""
    given = GivenPages()
    for url, page in pages.items():
        image = partial(_screenshot, page, is_drawn)
        given.add(url, page.text, image, page.trouble, page.unfolded)
    return given


def _screenshot(page: LabelledPage, is_drawn: bool) -> bytes | None:
    """Return a page's screenshot; none is drawn where Pillow's font lacks the letters."""
    if page.image_file is not None:
        return page.image_file.read_bytes()
    is_drawn = is_drawn and can_be_drawn(page.text)
    return screenshot(page.text, page.picture) if is_drawn else None


@dataclass(frozen=True, slots=True)
class Rates:
    """How often a judge is right on some cases; each figure with Wilson's interval.

    Args:
        false_accepted: share of the false claims that it takes for supported.
        true_rejected: share of the true claims that it takes for unsupported.
    """

    cases: int
    right: int
    accuracy: Estimate
    false_accepted: Estimate
    true_rejected: Estimate


def rates(outcomes: Iterable[CaseOutcome]) -> Rates:
    """Return the rates of the cases that the judge replied to."""
    replied = [outcome for outcome in outcomes if outcome.is_right is not None]
    wrong = [outcome for outcome in replied if not outcome.is_right]
    accepted, rejected = (
        Estimate.of_share(
            sum(outcome.case.right is verdict for outcome in wrong),
            sum(outcome.case.right is verdict for outcome in replied),
        )
        for verdict in (False, True)
    )
    right = len(replied) - len(wrong)
    share = Estimate.of_share(right, len(replied))
    return Rates(len(replied), right, share, accepted, rejected)


@dataclass(frozen=True)
class Quality:
    """A judge on the labelled set.

    Args:
        weak: categories with more errors than the others explain.
    """

    check: JudgeCheck
    overall: Rates
    by_category: dict[str, Rates]
    weak: list[str]

    @property
    def wrong(self) -> list[CaseOutcome]:
        """Return the cases with a wrong reply."""
        return [outcome for outcome in self.check.outcomes if outcome.is_right is False]

    @property
    def failures(self) -> Counter[str]:
        """Return why cases have no reply, with their numbers."""
        return Counter(
            outcome.failure for outcome in self.check.outcomes if outcome.failure is not None
        )

    @property
    def balanced_accuracy(self) -> float | None:
        """Return the mean of the shares of true and of false claims on which the judge is right."""
        errors = (self.overall.false_accepted.value, self.overall.true_rejected.value)
        return None if errors[0] is None or errors[1] is None else 1 - (errors[0] + errors[1]) / 2

    @property
    def declined(self) -> int:
        """Return the number of replies that the judge declined."""
        return sum(outcome.declined for outcome in self.check.outcomes)

    def record(self) -> CheckRecord | None:
        """Return the check as results name it, ``None`` without any reply."""
        labelled, accuracy = self.check.labelled, self.overall.accuracy
        if accuracy.value is None or accuracy.low is None or accuracy.high is None:
            return None
        return CheckRecord(
            judge=self.check.judge.identity,
            set_version=labelled.version,
            set_seed=labelled.seed,
            set_digest=labelled.digest,
            is_whole_set=labelled.is_whole and not self.failures,
            cases=self.overall.cases,
            accuracy=accuracy.value,
            low=accuracy.low,
            high=accuracy.high,
            claims_low=self._on_claims().low,
            checked=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def _on_claims(self) -> Estimate:
        outcomes = (each for each in self.check.outcomes if isinstance(each.case.right, bool))
        return rates(outcomes).accuracy


def quality(check: JudgeCheck) -> Quality:
    """Return a judge's quality by its replies."""
    by_category = {
        name: rates(outcome for outcome in check.outcomes if outcome.case.category == name)
        for name in check.labelled.categories
    }
    overall = rates(check.outcomes)
    weak = [name for name, own in by_category.items() if _is_weak(own, overall, len(by_category))]
    return Quality(
        check,
        overall,
        by_category,
        weak,
    )


def _is_weak(own: Rates, overall: Rates, categories: int) -> bool:
    """Test whether so few right replies are likely (Bonferroni).

    The test assumes the accuracy of the other categories.
    """
    others = overall.cases - own.cases
    if not others or not own.cases:
        return False
    # Jeffreys' estimate: no accuracy is taken for certain.
    accuracy = (overall.right - own.right + 0.5) / (others + 1)
    chance = sum(
        math.comb(own.cases, right) * accuracy**right * (1 - accuracy) ** (own.cases - right)
        for right in range(own.right + 1)
    )
    return chance < _LEVEL / categories


@dataclass(frozen=True)
class JudgeComparison:
    """The difference of two judges' accuracies over the cases to which both replied.

    Args:
        test: over pairs of a true claim and its false twin, which are not independent.
    """

    first: JudgeCheck
    second: JudgeCheck
    cases: int
    test: PairedTest
    holm_p: float

    @property
    def other_verdicts(self) -> int:
        """Return the number of cases to which the two give different verdicts."""
        return sum(one.given != other.given for one, other in _replied(self.first, self.second))


def comparisons(checks: Sequence[JudgeCheck]) -> list[JudgeComparison]:
    """Compare each two judges; p-values are corrected for their number (Holm)."""
    pairs = list(combinations(checks, 2))
    tests = [_compare_pairs(first, second) for first, second in pairs]
    corrected = PairedTest.adjusted(
        [1.0 if test.p_value is None else test.p_value for _, test in tests]
    )
    return [
        JudgeComparison(*pair, cases, test, p)
        for pair, (cases, test), p in zip(pairs, tests, corrected, strict=True)
    ]


def _replied(first: JudgeCheck, second: JudgeCheck) -> list[tuple[CaseOutcome, CaseOutcome]]:
    """Return the outcomes of the cases to which both judges replied."""
    pairs = zip(first.outcomes, second.outcomes, strict=True)
    return [pair for pair in pairs if None not in (pair[0].is_right, pair[1].is_right)]


def _compare_pairs(first: JudgeCheck, second: JudgeCheck) -> tuple[int, PairedTest]:
    clusters: dict[str, list[int]] = {}
    for one, other in _replied(first, second):
        difference = bool(other.is_right) - bool(one.is_right)
        clusters.setdefault(one.case.pair, []).append(difference)
    differences = [fmean(own) for own in clusters.values()]
    return sum(map(len, clusters.values())), PairedTest.of(differences, (-1.0, 1.0))
