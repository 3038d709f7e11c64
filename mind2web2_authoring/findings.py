"""Findings on a rubric: the trees of wrong answers are compared with that of a right one."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from mind2web2.plugin import (
    AskedClaim,
    FieldShape,
    PolicyRun,
    WrittenNode,
    facts_in,
    number,
)
from mind2web2_authoring.answers import Answer, claim_on_pages
from mind2web2_authoring.fitting import leaves_failed_by_code
from mind2web2_authoring.other_values import texts_in
from mind2web2_authoring.variants import NEARLY, NO_ANSWER, Change, Variants, nothing

# The kinds of findings, worst first, and what to do.
KINDS = {
    "script fails": "correct the script: such an answer gets no result",
    "right answer fails": "turn the test round, or correct the perfect answer",
    "never judged": "verify the leaf, or decide it by code",
    "points for nothing": "test what the answer gives, and let missing values fail",
    "missing items are free": "fill the list up to the number asked for, so that missing items "
    "fail",
    "same item scores twice": "let an item fail whose name an earlier one has",
    "gate without effect": "make the test critical, and let it fail on missing values",
    "sources dropped": "pass the cited pages as sources, behind a critical test that there are any",
    "value ignored": "name the value in the claim",
    "claim twice": "remove one, or let it ask something else",
    "mistake": "correct the call",
    "text": "",
    "case": "correct the rubric, or what the case expects",
}
# The author may have meant it so: a task with no other findings is to be looked at.
LESS_CERTAIN = frozenset(
    {
        "missing items are free",
        "gate without effect",
        "sources dropped",
        "value ignored",
        "claim twice",
    }
)
# On scripts of others fewer than seven in ten of these were faults: only -v shows them.
OFTEN_WRONG = frozenset({"gate without effect", "claim twice"})
# A worthless answer may have that many points before they are a finding.
MAX_POINTS = 0.1
_MAX_NAMES = 4
_NUMBER = re.compile(r"\d+")
_LETTERS = re.compile(r"[^\W\d_]{2}")
# A claim about the answer itself, or one that compares two values, needs no page.
_ABOUT_THE_ANSWER = re.compile(
    r"\b(answer|response|report|stated|mentioned|provided|given|listed|expected|compared|reasonabl[ey]"
    r"|same|equals?|equivalent|identical|refers? to|corresponds?|match(?:es)?|sum of|differs?"
    r"|consistent|based on|alone|titles?|ingredients?|common knowledge)\b",
    re.IGNORECASE,
)
_OF_THE_SCRIPT = re.compile(r"\d|\b(?:answer|response|report)\b", re.IGNORECASE)
# Words for bounds in descriptions of leaves.
_LOW = r"under|below|less than|fewer than|at most|up to|cheaper than|before"
_HIGH = r"over|above|more than|at least|after"
_UPPER = re.compile(
    rf"(?<!not )(?<!no )\b(?:{_LOW})\b|\b(?:not?|never) (?:{_HIGH})\b", re.IGNORECASE
)
_LOWER = re.compile(
    rf"(?<!not )(?<!no )\b(?:{_HIGH})\b|\b(?:not?|never) (?:{_LOW})\b", re.IGNORECASE
)
# Parts of names that say nothing about a field.
_COMMON_WORDS = frozenset({"name", "value", "text", "info", "item", "number"})


@dataclass(frozen=True)
class Finding:
    """Something about a rubric that its author should know.

    Args:
        kind: one of ``KINDS``.
        place: file and line.
        leaves: the leaves that it is about.
    """

    kind: str
    message: str
    leaves: tuple[str, ...] = ()
    place: str = ""

    @property
    def cure(self) -> str:
        """Return what to do."""
        return KINDS[self.kind]

    def __str__(self) -> str:
        """Return one line: where, what kind, and what is wrong."""
        return f"{self.place and f'{self.place}: '}{self.kind}: {self.message}"


def family(leaf: str) -> str:
    """Return a leaf's id without its numbers, as items of a loop are one cause."""
    return _NUMBER.sub("N", leaf)


def names_of(leaves: Iterable[str]) -> str:
    """Return some leaves for a message; those of a loop are named once."""
    firsts: dict[str, str] = {}
    for leaf in leaves:
        firsts.setdefault(family(leaf), leaf)
    names = list(firsts.values())
    more = len(names) - _MAX_NAMES
    shown = ", ".join(names[:_MAX_NAMES])
    return f"{shown} and {more} more" if more > 0 else shown


def _about(kind: str, leaves: Iterable[str], before: str = "", after: str = "") -> list[Finding]:
    """Return a finding whose message names leaves, none without any.

    Args:
        before: the words of the message before the leaves.
        after: the words behind them.
    """
    named = tuple(leaves)
    if not named:
        return []
    return [Finding(kind, f"{before}{names_of(named)}{after}", named)]


def by_cause(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings, worst first, without those of a kind or a cause that is named before."""
    told: set[tuple[str, str]] = set()
    result: dict[Finding, None] = {}
    for finding in sorted(findings, key=lambda each: list(KINDS).index(each.kind)):
        causes = {(finding.kind, family(leaf)) for leaf in finding.leaves}
        if not causes or causes - told:
            result[finding] = None
        told |= causes
    return list(result)


async def findings_of(variants: Variants) -> list[Finding]:
    """Return what the runs on all variants show."""
    right = variants.right_run
    findings = _never_judged(right)
    empty = await variants.worthless("an empty answer", NO_ANSWER)
    echo = await variants.worthless("the question as the answer", variants.question)
    wrong = await variants.all_wrong()
    without_values = await variants.without_values()
    unsourced = await variants.unsourced()
    findings += await _other_values(variants, wrong)
    findings += await _other_items(variants)
    findings += _find_inverted_tests(right, empty)
    findings += [*_points("an empty answer", empty), *_points("an answer of wrong values", wrong)]
    findings += _find_words_that_score(echo, empty)
    findings += await _always(variants)
    findings += [*_same_claims(variants), *_without_pages(variants, await variants.all_other())]
    if variants.is_full:
        findings += _open_gates(right, (without_values, unsourced))
        findings += _find_lost_sources(right, unsourced)
    for error, name in variants.failures.items():
        findings.append(Finding("script fails", f"{name} has no result: {error}"))
    for fault in dict.fromkeys(right.faults):
        place, _, text = fault.partition(": ")
        if "never judged" not in text:
            findings.append(Finding("mistake", text, place=place.replace(", line ", ":")))
    return findings


def _never_judged(run: PolicyRun) -> list[Finding]:
    # A run without a tree has a root without a name.
    leaves = (leaf.id for leaf in run.leaves if leaf.id and leaf.verdict.status == "initialized")
    return _about("never judged", leaves, "never judged, so never passed: ")


def _same_claims(variants: Variants) -> Iterator[Finding]:
    """Find leaves that ask the same on every answer."""
    groups: dict[tuple[str, str, tuple[str, ...]], dict[str, None]] = defaultdict(dict)
    for claim in variants.right_run.claims:
        asked = claim.verification
        if asked.node_id is not None:
            question = (asked.claim, asked.additional_instruction, tuple(claim.urls))
            groups[question][asked.node_id] = None
    for leaves in map(tuple, groups.values()):
        if len(leaves) > 1 and _ask_the_same(leaves, variants.believed_runs):
            names = ", ".join(leaves[:_MAX_NAMES])
            yield Finding("claim twice", f"the same claim: {names}", leaves)


def _ask_the_same(leaves: Sequence[str], runs: Iterable[PolicyRun]) -> bool:
    """Tell whether these leaves have one claim on all answers: values may be equal in one."""
    asked = [_claims_of(run) for run in runs]
    return all(len({claims[leaf] for leaf in leaves if leaf in claims}) < 2 for claims in asked)


def _claims_of(run: PolicyRun) -> dict[str, str]:
    """Return what each leaf asks."""
    return {claim.verification.node_id or "": claim.verification.claim for claim in run.claims}


def _without_pages(variants: Variants, other: PolicyRun) -> list[Finding]:
    """Find claims on an extracted value that no page is opened for.

    Args:
        other: the run on other values in all fields, of which all claims hold.
    """
    claims, other_claims = variants.right_run.claims, _claims_of(other)
    bare = [
        claim
        for claim in claims
        if not claim.urls and _states_a_fact(claim, variants, other_claims)
    ]
    leaves = (claim.verification.node_id or claim.verification.claim for claim in bare)
    message = "judged from the answer alone, without a page"
    if not any(claim.urls for claim in claims):
        message = "no claim opens a page"
    return _about("sources dropped", leaves, f"{message}: ")


def _values_of(variants: Variants) -> set[str]:
    return set(texts_in(list(variants.right.values.values())))


def _named(claim: str, values: set[str]) -> list[str]:
    """Return the values that a claim names, the longest first."""
    named = (value for value in values if len(value) > 1 and value in claim)
    return sorted(named, key=len, reverse=True)


def _plain(claim: str, values: set[str]) -> str:
    """Return a claim without the values that it names."""
    for value in _named(claim, values):
        claim = claim.replace(value, "")
    return claim


def _states_a_fact(claim: AskedClaim, variants: Variants, others: Mapping[str, str]) -> bool:
    """Tell whether a claim names a value of the answer and compares it with none."""
    asked, values = claim.verification, _values_of(variants)
    named = _named(asked.claim, values)
    plain = _plain(asked.claim, values)
    is_compared = _ABOUT_THE_ANSWER.search(f"{plain} {asked.additional_instruction}")
    # "The year 2011 is between 2005 and now."
    is_sum = not any(map(_LETTERS.search, named)) and _NUMBER.search(plain)
    other = others.get(asked.node_id or "", "")
    is_known = _names_known(asked.claim, other, variants)
    return bool(named) and not is_compared and not is_sum and not is_known


def _names_known(claim: str, other: str, variants: Variants) -> bool:
    """Tell whether a claim names what neither the answer says nor the author asks for.

    Args:
        other: the claim on other values.
    """
    said = " ".join([variants.question, *(form.prompt for form in variants.right_run.forms)])
    names = (fact.text for fact in facts_in(claim, "name"))
    return any(name in other and name not in said for name in names)


def _steers(variants: Variants, run: PolicyRun) -> bool:
    """Tell whether a change leads to other extractions, and not only to other claims."""
    before, now = ([form.prompt for form in each.forms] for each in (variants.right_run, run))
    return before != now


async def _other_values(variants: Variants, wrong: PolicyRun) -> list[Finding]:
    """Give each field another value in turn, a far one, and none.

    Args:
        wrong: the run on other values in all fields.
    """
    findings = []
    claims = _Claims(_claims_of(variants.right_run))
    for key, shape in variants.fields("text", "number", "flag", "choice", "address"):
        if not variants.has_value(key, shape):
            continue
        run = await variants.another(key, shape)
        if shape.kind in ("text", "number"):
            place = f"{key} {shape.in_words}"
            claims.note(shape.name, place, _claims_of(await variants.believed(key, shape)))
        is_free = variants.scores_like_right(run) and not _steers(variants, run)
        if shape.kind == "address" and is_free:
            message = f"no claim opens the pages of {shape.in_words}: other ones score 1 too"
            place = variants.places.of_field(shape)
            findings.append(Finding("sources dropped", message, place=place))
        findings += await _tests_of(variants, key, shape, run)
    return [*findings, *_find_ignored(variants, wrong, claims)]


class _Claims:
    """Which leaves' claims follow the value of which fields.

    Args:
        right: the claims on the right answer.
    """

    def __init__(self, right: Mapping[str, str]) -> None:
        self.right = right
        self._tried: Counter[str] = Counter()
        self._same: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._followed: defaultdict[str, set[frozenset[str]]] = defaultdict(set)

    def note(self, field: str, place: str, claims: Mapping[str, str]) -> None:
        """Note the claims on an answer with another value of a field at this place."""
        self._tried[field] += 1
        for leaf, claim in claims.items():
            if claim == self.right.get(leaf):
                self._same[leaf][field] += 1
            else:
                self._followed[leaf].add(frozenset(_words(place)))

    def ignored(self, leaf: str, words: set[str]) -> Iterator[str]:
        """Yield the fields of which a leaf speaks by these words, and not by its claim."""
        for field, count in self._same[leaf].items():
            name = frozenset(_words(field))
            is_about = name <= words and not name <= _COMMON_WORDS
            # "travel_time" is no "time".
            is_other = any(name <= longer for longer in self._followed[leaf])
            if is_about and not is_other and count == self._tried[field]:
                yield field


def _find_ignored(variants: Variants, wrong: PolicyRun, claims: _Claims) -> Iterator[Finding]:
    """Find leaves that speak of a field, and whose claim does not follow its value."""
    values = _values_of(variants)
    descriptions = {leaf.id: leaf.desc for leaf in wrong.leaves}
    ignoring: dict[str, list[str]] = defaultdict(list)
    for leaf in variants.right_run.leaves:
        # A description may show the answer's values, and these may have a field's name.
        shown = set(_words(leaf.desc)) & set(_words(descriptions.get(leaf.id, "")))
        # A claim about the answer, or one with a bound of the script's own, need not name it.
        plain = _plain(claims.right.get(leaf.id, ""), values)
        if not _OF_THE_SCRIPT.search(plain):
            for field in claims.ignored(leaf.id, shown | set(_words(leaf.id))):
                ignoring[field].append(leaf.id)
    for field, leaves in ignoring.items():
        yield from _about("value ignored", leaves, f"the claim is the same whatever {field} is: ")


async def _tests_of(
    variants: Variants, key: str, shape: FieldShape, other: PolicyRun
) -> list[Finding]:
    """Look at the tests of the script's own code that a field decides."""
    findings = []
    right, name = variants.right_run, shape.in_words
    tests = {leaf.id: leaf for leaf in right.leaves if _is_code(leaf) and leaf.is_passed}
    runs = [other]
    if tests and variants.has_far_value(key, shape):
        far = [await variants.far(key, shape, sign) for sign in (-1, 1)]
        runs += far
        turned = (test for test, leaf in tests.items() if _is_turned(leaf, *far))
        message = " passes on the wrong side of its description's bound"
        findings += _about("right answer fails", turned, after=message)
    failed = [test for test in tests if not all(run.verdicts.get(test, True) for run in runs)]
    if failed:
        run = await variants.with_change(f"no {name}", key, shape, nothing)
        free = (test for test in failed if run.verdicts.get(test))
        message = f" passes without {name}, though not with a wrong one"
        findings += _about("points for nothing", free, after=message)
    return findings


def _is_turned(leaf: WrittenNode, low: PolicyRun, high: PolicyRun) -> bool:
    """Tell whether a test is for low values, and only high ones pass, or the other way round."""
    is_upper, is_lower = (bool(bound.search(leaf.desc)) for bound in (_UPPER, _LOWER))
    passing = low.verdicts.get(leaf.id), high.verdicts.get(leaf.id)
    return is_upper != is_lower and passing == (is_lower, is_upper)


def _words(name: str) -> list[str]:
    return list(filter(None, re.split(r"[_\W\d]+", name.lower())))


async def _other_items(variants: Variants) -> list[Finding]:
    """Leave all items of each list but the first out, and repeat the first one."""
    findings = []
    for key, shape, count in variants.lists():
        name, place = shape.in_words, variants.places.of_field(shape)
        one = await variants.with_change(f"one of {name}", key, shape, lambda items, _: items[:1])
        free = 1 if _is_free(variants, one) else 0
        if variants.right.given and not free:
            # Scripts may take fewer than there are made-up ones.
            fewer = f"{count - 1} of {name}"
            run = await variants.with_change(fewer, key, shape, lambda items, _: items[:-1])
            free = count - 1 if _is_free(variants, run) else 0
        if free:
            message = f"{free} of {count} {name} scores 1 like all"
            findings.append(Finding("missing items are free", message, place=place))
            continue
        again: Change = lambda items, _, count=count: items[:1] * count  # type: ignore[misc]  # noqa: E731
        same = await variants.with_change(f"the same of {name} again and again", key, shape, again)
        scores = one.score or 0.0, same.score or 0.0
        if variants.is_full and scores[1] > scores[0] + MAX_POINTS:
            message = (
                f"the same item {count} times in {name} scores {number(scores[1])}, once "
                f"{number(scores[0])}"
            )
            right = [leaf.id for leaf in variants.right_run.leaves if _is_code(leaf)]
            tests = tuple(test for test in right if not same.verdicts.get(test, True))
            kind = "gate without effect" if tests else "same item scores twice"
            message += f", though {names_of(tests)} fails" if tests else ""
            findings.append(Finding(kind, message, tests, place=place if not tests else ""))
    return findings


def _is_free(variants: Variants, run: PolicyRun) -> bool:
    """Tell whether items are missing that the script would have asked about."""
    before, now = ({*map(claim_on_pages, each.claims)} for each in (variants.right_run, run))
    return variants.scores_like_right(run) and before != now and not _steers(variants, run)


def _is_code(leaf: WrittenNode) -> bool:
    return leaf.evidence is not None and leaf.evidence.decided_by == "script"


def _find_inverted_tests(right: PolicyRun, empty: PolicyRun) -> list[Finding]:
    passed = empty.passed
    leaves = (leaf.id for leaf in leaves_failed_by_code(right) if leaf.id in passed)
    message = "fails on a right answer and passes on an empty one: "
    return _about("right answer fails", leaves, message)


def _points(name: str, run: PolicyRun) -> Iterator[Finding]:
    """Find leaves that give a worthless answer points."""
    if run.score is not None and run.score > MAX_POINTS:
        leaves = _scoring(run)
        source = f"points come from {names_of(leaves)}" if leaves else "no single leaf gives them"
        message = f"{name} scores {number(run.score)}: {source}"
        yield Finding("points for nothing", message, leaves)


def _scoring(run: PolicyRun) -> tuple[str, ...]:
    """Return the leaves that passed and without which the score would be lower."""
    rescoring = run.tree.rescoring()
    least = (run.score or 0.0) - NEARLY
    leaves = []
    for leaf in run.leaves:
        if leaf.is_passed and rescoring.score_without(leaf) < least:
            leaves.append(leaf.id)
    return tuple(leaves)


def _find_words_that_score(echo: PolicyRun, empty: PolicyRun) -> list[Finding]:
    if empty.error is not None:
        return []
    leaves = sorted(echo.passed - empty.passed)
    return _about("points for nothing", leaves, "the question's own words pass ")


async def _always(variants: Variants) -> list[Finding]:
    """Find tests of the script's own code that pass on every answer."""
    runs = [variants.right_run, *variants.runs]
    tests = [leaf for leaf in variants.right_run.leaves if _is_code(leaf) and leaf.is_passed]
    if any(_passes_in_all(runs, leaf.id) for leaf in tests):
        # A test against too many items fails only on these.
        runs.append(await variants.many_items())
    always = [leaf for leaf in tests if _passes_in_all(runs, leaf.id)]
    gates = (leaf.id for leaf in always if leaf.critical)
    others = (leaf.id for leaf in always if not leaf.critical)
    message = "passes on every answer, also on an empty one: "
    return [
        *_about("gate without effect", gates, message),
        *_about("points for nothing", others, message),
    ]


def _passes_in_all(runs: Sequence[PolicyRun], test: str) -> bool:
    return all(run.verdicts.get(test) for run in runs)


def _open_gates(right: PolicyRun, runs: Iterable[PolicyRun]) -> list[Finding]:
    """Find tests that fail on missing values while claims beside them are still judged."""
    before = {claim.verification.node_id: claim_on_pages(claim) for claim in right.claims}
    passed = right.passed
    gates: dict[str, None] = {}
    behind: dict[str, None] = {}
    for run in runs:
        asked = {claim.verification.node_id: claim_on_pages(claim) for claim in run.claims}
        for node in run.tree.walk():
            failing = [leaf for leaf in node.children if _is_open(leaf) and leaf.id in passed]
            # A test behind the claims counts them.
            first = min(map(node.children.index, failing), default=0)
            claims = [leaf.id for child in node.children[first:] for leaf in child.leaves()]
            changed = [name for name in claims if name in asked and asked[name] != before.get(name)]
            if failing and changed and node.strategy == "parallel":
                gates |= dict.fromkeys(map(attrgetter("id"), failing))
                behind |= dict.fromkeys(changed)
    message = f" fails on missing values, and {names_of(behind)} is judged all the same"
    return _about("gate without effect", gates, after=message)


def _is_open(leaf: WrittenNode) -> bool:
    return not leaf.children and _is_code(leaf) and not leaf.critical and not leaf.is_passed


def _find_lost_sources(right: PolicyRun, unsourced: PolicyRun) -> list[Finding]:
    """Find claims that are judged without a page, and pass, where the answer gives no addresses."""
    asked = [claim.verification for claim in right.claims if claim.urls]
    with_page = {(each.node_id, each.claim) for each in asked}
    bare = [claim.verification for claim in unsourced.claims if not claim.urls]
    names = {each.node_id for each in bare if (each.node_id, each.claim) in with_page}
    leaves = (name for name in _scoring(unsourced) if name in names)
    message = "judged from the answer alone where no address is given: "
    return _about("sources dropped", leaves, message)


def refusal_of(right: Answer, run: PolicyRun) -> Finding | None:
    """Return why the answer that deserves 1 does not score it.

    The result is ``None`` where code refuses made-up values.
    """
    if run.error is not None:
        return Finding("script fails", f"an ordinary answer has no result: {run.error}")
    if run.score is None or run.score >= 1 - NEARLY:
        return None
    refused = [leaf.id for leaf in leaves_failed_by_code(run)]
    if refused and not right.given:
        return None
    # A leaf that is never judged is a finding of its own.
    short = [leaf for leaf in run.leaves if leaf.verdict.score < 1]
    judged = [leaf.id for leaf in short if leaf.verdict.status != "initialized"]
    if short and not judged:
        return None
    lost = refused or judged
    reason = f"{names_of(lost)} does not pass" if lost else "the script returns another score"
    message = f"the right answer scores {number(run.score)}: {reason}"
    return Finding("right answer fails", message, tuple(lost))
