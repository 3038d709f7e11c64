"""A rubric tree as a result file has it; pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from mind2web2.rubric.aggregation import Outcome, Status, aggregate
from mind2web2.rubric.evidence import TO_THIS_JUDGE, Evidence, PageCheck, QuoteMatch

# Sums of the same numbers may differ by their last digits from one Python to the next.
TOLERANCE = 1e-9
# What is kept of a tree, which a result says in ``run.tree_format``: since 2, how a leaf was decided before
# it was decided otherwise.
TREE_FORMAT = 2


class TreeShapeError(ValueError):
    """What stands in a result's place for a tree is none; the text says where."""


class _Verdict(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)

    score: float
    status: Status

    def outcome(self) -> Outcome:
        return Outcome(self.score, self.status)


class _NodeFields(_Verdict):
    id: str
    desc: str
    critical: bool
    strategy: Literal["parallel", "sequential"]
    superseded: _Verdict | None = None


@dataclass(frozen=True, slots=True)
class WrittenNode:
    """A node of a result's tree.

    Args:
        shown: score and status as they stand there.
        superseded: a leaf's own verdict, where the end of a sequence has overwritten it.
    """

    id: str
    critical: bool
    strategy: str
    shown: Outcome
    superseded: Outcome | None
    evidence: Evidence | None
    children: list[WrittenNode] = field(default_factory=list)

    @property
    def verdict(self) -> Outcome:
        """Return what was decided about a leaf, whatever a sequence wrote over it."""
        return self.superseded or self.shown

    def walk(self) -> Iterator[WrittenNode]:
        """Yield this node and all below it, each before its children, in rubric order."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))


def written_tree(tree: object) -> WrittenNode:
    """Return the tree that a result file has, however deep.

    Raises:
        TreeShapeError: it is none.
    """
    root = _node(tree, "the root")
    stack: list[tuple[WrittenNode, Any]] = [(root, tree)]
    while stack:
        node, fields = stack.pop()
        children = fields.get("children", [])
        if not isinstance(children, list):
            raise TreeShapeError(f"children of '{node.id}' are no list")
        for child_fields in children:
            child = _node(child_fields, f"a child of '{node.id}'")
            node.children.append(child)
            stack.append((child, child_fields))
    return root


def _node(fields: object, what: str) -> WrittenNode:
    if not isinstance(fields, dict):
        raise TreeShapeError(f"{what} is no node")
    try:
        # Children apart: they may be nested deeper than a validator goes.
        own = {name: value for name, value in fields.items() if name not in ("children", "evidence")}
        node = _NodeFields.model_validate(own)
        evidence = fields.get("evidence")
        read = None if evidence is None else Evidence.model_validate(evidence)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(step) for step in problem["loc"])
        named = f" '{fields['id']}'" if isinstance(fields.get("id"), str) else ""
        raise TreeShapeError(f"{what}{named} is no node: {where}: {problem['msg']}") from error
    return WrittenNode(
        id=node.id,
        critical=node.critical,
        strategy=node.strategy,
        shown=node.outcome(),
        superseded=None if node.superseded is None else node.superseded.outcome(),
        evidence=read,
    )


def is_same_score(one: float, other: float) -> bool:
    """Tell whether two scores are the same, rounding aside."""
    return math.isclose(one, other, rel_tol=0.0, abs_tol=TOLERANCE)


def only_tree(result: Mapping[str, Any]) -> object | None:
    """Return the one tree of a result, ``None`` where it has none or several."""
    parts = result.get("eval_breakdown")
    if not isinstance(parts, list) or len(parts) != 1 or not isinstance(parts[0], dict):
        return None
    return parts[0].get("verification_tree")


def score_by_tree(result: Mapping[str, Any]) -> float | None:
    """Return the score that follows from the leaves of a result, ``None`` where it has no tree."""
    try:
        root = written_tree(only_tree(result))
    except TreeShapeError:
        return None
    return aggregate(root)[id(root)].score


def other_score_by_tree(result: Mapping[str, Any]) -> float | None:
    """Return the score that follows from the leaves of a result, ``None`` where that is the one it has."""
    score, by_tree = result.get("final_score"), score_by_tree(result)
    if by_tree is None or not isinstance(score, int | float) or not 0 <= score <= 1:
        return None
    return None if is_same_score(score, by_tree) else by_tree


def judged_pages(root: WrittenNode) -> Iterator[PageCheck]:
    """Yield every check of a page in a tree that votes were cast on."""
    for node in root.walk():
        if node.evidence is not None:
            yield from (check for check in node.evidence.pages if check.votes)


def other_pages(
    result: Mapping[str, Any], pages: Mapping[str, str | None]
) -> dict[str, tuple[str | None, ...]]:
    """Return the digests of pages that a result says were judged, and that are not those looked up.

    Args:
        pages: digests of the pages that were looked up in the task's cache.
    """
    try:
        root = written_tree(only_tree(result))
    except TreeShapeError:
        return {}
    found: dict[str, set[str | None]] = {}
    for check in judged_pages(root):
        sha256 = None if check.page is None else check.page.sha256
        if check.url not in pages or pages[check.url] != sha256:
            found.setdefault(check.url, set()).add(sha256)
    return {url: tuple(sorted(digests, key=str)) for url, digests in sorted(found.items())}


QUOTE_MATCHES: tuple[QuoteMatch, ...] = get_args(QuoteMatch)
Reservation = Literal["page_not_had", "suspect_page", "declined", "flagged", "error"]

# Who else decides a leaf (``Evidence``) has not judged a claim.
_JUDGED = ("judge", "page", "error")
_NOT_RECORDED = "parameters not recorded"


@dataclass(frozen=True, slots=True)
class ClaimFacts:
    """One verdict on a claim.

    Args:
        reservations: what speaks against relying on it.
        is_voted: the judge was asked more than once about the same page, or about the answer.
        is_split: those votes differ; declined ones are no opinion.
        quotes: how each passage that the judge quoted was found again.
    """

    reservations: frozenset[Reservation]
    is_voted: bool
    is_split: bool
    quotes: tuple[QuoteMatch, ...] = ()


@dataclass(frozen=True, slots=True)
class ResultFacts:
    """What one result says of itself.

    Args:
        judge: model and parameters, in words; ``None`` where it names no judge.
        server: which one answered, as far as that tells servers apart.
        served: what the judge was reported to be, in words.
        versions: of whatever made the result, by name.
        script: version folder and file name of the eval script.
        is_explained: it has the evidence that its verdicts rest on.
        is_treeless: its score rests on no rubric tree, only on its script's word.
        is_off_tree: its script returned another score than its rubric tree comes to.
        is_flagged: the answer looks as if it talked to the judge.
        claims: a judge's verdicts, and those that came to one for want of a page.
        extractions: what speaks against each extraction that something speaks against.
    """

    judge: str | None = None
    server: str | None = None
    served: frozenset[str] = frozenset()
    versions: Mapping[str, str] = field(default_factory=dict)
    script: str | None = None
    script_sha256: str | None = None
    in_doubt: bool = False
    is_explained: bool = False
    is_treeless: bool = False
    is_off_tree: bool = False
    is_flagged: bool = False
    claims: tuple[ClaimFacts, ...] = ()
    extractions: tuple[frozenset[Reservation], ...] = ()


NO_FACTS = ResultFacts()


def result_facts(result: Mapping[str, Any]) -> ResultFacts:
    """Return what a result file's content says."""
    made_from = _mapping(result.get("provenance"))
    leaves = list(leaves_of(result))
    return ResultFacts(
        judge=_judge(result, made_from),
        server=_server(made_from),
        served=frozenset(_served(made_from)),
        versions=_versions(result, made_from),
        script=_text(made_from.get("script")),
        script_sha256=_text(made_from.get("script_sha256")),
        in_doubt=bool(result.get("doubts")),
        is_explained=any(_evidence(leaf) for leaf in leaves),
        is_treeless=not leaves,
        is_off_tree=other_score_by_tree(result) is not None,
        is_flagged=bool(result.get("answer_flags")),
        claims=tuple(_claim(leaf) for leaf in leaves if _evidence(leaf).get("decided_by") in _JUDGED),
        extractions=tuple(
            found for record in _mappings(result.get("extractions")) if (found := _of_extraction(record))
        ),
    )


def leaves_of(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the leaves of a result's rubric trees, in no order."""
    stack: list[Any] = [part.get("verification_tree") for part in _mappings(result.get("eval_breakdown"))]
    while stack:
        node = _mapping(stack.pop())
        children = _mappings(node.get("children"))
        if node and not children:
            yield node
        stack.extend(children)


def pages_not_had(leaf: Mapping[str, Any]) -> list[str]:
    """Return the pages that a claim cites and that could not be had."""
    return [str(check.get("url")) for check in _checks(leaf) if check.get("outcome") == "unavailable"]


def pages_not_read(result: Mapping[str, Any]) -> list[str]:
    """Return the page of each extraction that is empty because its page could not be had."""
    records = _mappings(result.get("extractions"))
    return [str(record.get("url")) for record in records if record.get("unavailable")]


def refused_pages(result: Mapping[str, Any]) -> list[str]:
    """Return the pages that could not be captured because their addresses are private."""
    return [str(url) for url in _items(_mapping(result.get("provenance")).get("refused_pages"))]


def refused_downloads(result: Mapping[str, Any]) -> list[str]:
    """Return what the script itself could not download because its address is private."""
    return [str(url) for url in _items(_mapping(result.get("provenance")).get("refused_downloads"))]


def decisive_troubles(leaf: Mapping[str, Any]) -> frozenset[str]:
    """Return what is wrong with the pages that decided a leaf."""
    pages = [_mapping(check.get("page")) for check in _decisive(leaf)]
    return frozenset(str(kind) for page in pages for kind in _items(page.get("troubles")))


def is_shown_in_part(leaf: Mapping[str, Any]) -> bool:
    """Tell whether the judge was shown fewer images of a page of the leaf's than there are."""
    pages = [_mapping(check.get("page")) for check in _checks(leaf)]
    return any(TO_THIS_JUDGE in str(note) for page in pages for note in _items(page.get("notes")))


def declined_counts(result: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many votes and how many extractions of a result the judge declined."""
    entries = [entry for leaf in leaves_of(result) for entry in (_evidence(leaf), *_checks(leaf))]
    votes = sum(bool(vote.get("declined")) for entry in entries for vote in _votes(entry))
    return votes, sum(bool(record.get("declined")) for record in _mappings(result.get("extractions")))


def quote_counts(result: Mapping[str, Any]) -> dict[str, int]:
    """Return how many passages that the judge quoted were found, nearly found, and not found."""
    found = Counter(match for leaf in leaves_of(result) for match in _quotes(leaf))
    return {match: found[match] for match in QUOTE_MATCHES}


def _quotes(leaf: Mapping[str, Any]) -> Iterator[QuoteMatch]:
    for entry in (_evidence(leaf), *_checks(leaf)):
        for vote in _votes(entry):
            match = _mapping(vote.get("quote")).get("match")
            if match in QUOTE_MATCHES:
                yield match


def _decisive(leaf: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the check of the page that supports a leaf, else those of all pages that were shown."""
    shown = [check for check in _checks(leaf) if check.get("page")]
    return [check for check in shown if check.get("outcome") == "supported"] or shown


def _claim(leaf: Mapping[str, Any]) -> ClaimFacts:
    groups = [_opinions(entry) for entry in (_evidence(leaf), *_checks(leaf))]
    return ClaimFacts(
        frozenset(_reservations(leaf)),
        is_voted=any(len(opinions) > 1 for opinions in groups),
        is_split=any(len(set(opinions)) > 1 for opinions in groups),
        quotes=tuple(_quotes(leaf)),
    )


def _reservations(leaf: Mapping[str, Any]) -> Iterator[Reservation]:
    evidence = _evidence(leaf)
    # What a sequence overwrote was a verdict nevertheless.
    status = (_mapping(leaf.get("superseded")) or leaf).get("status")
    if evidence.get("decided_by") == "error":
        yield "error"
    if decisive_troubles(leaf):
        yield "suspect_page"
    if evidence.get("flags") or any(_is_flagged(check) for check in _decisive(leaf)):
        yield "flagged"
    if status == "passed":
        return
    # Missing pages and refusals count against a claim: one that passes does so without them.
    if pages_not_had(leaf):
        yield "page_not_had"
    if any(vote.get("declined") for entry in (evidence, *_checks(leaf)) for vote in _votes(entry)):
        yield "declined"


def _of_extraction(record: Mapping[str, Any]) -> frozenset[Reservation]:
    page = _mapping(record.get("page"))
    found: dict[Reservation, object] = {
        "page_not_had": record.get("unavailable"),
        "declined": record.get("declined"),
        "suspect_page": page.get("troubles"),
        "flagged": _is_flagged(record),
    }
    return frozenset(kind for kind, is_so in found.items() if is_so)


def _is_flagged(entry: Mapping[str, Any]) -> bool:
    return bool(_mapping(entry.get("page")).get("flags"))


def _opinions(entry: Mapping[str, Any]) -> list[bool]:
    return [bool(vote.get("supported")) for vote in _votes(entry) if not vote.get("declined")]


def _votes(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return _mappings(entry.get("votes"))


def _checks(leaf: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return _mappings(_evidence(leaf).get("pages"))


def _evidence(leaf: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(leaf.get("evidence"))


def _judge(result: Mapping[str, Any], made_from: Mapping[str, Any]) -> str | None:
    model = _text(result.get("judge_model"))
    judge = _mapping(made_from.get("judge"))
    if not judge:
        return None if model is None else f"{model}, {_NOT_RECORDED}"
    names = ("temperature", "reasoning_effort", "max_images")
    parameters = [f"{name}={judge[name]}" for name in names if judge.get(name) is not None]
    return " ".join([model or str(judge.get("model")), *parameters])


def _server(made_from: Mapping[str, Any]) -> str | None:
    endpoint = _text(_mapping(made_from.get("judge")).get("endpoint"))
    # A replay's judgments are of any server; a client of the caller's own has another name in each process.
    return None if endpoint is None or endpoint == "replay" or endpoint.startswith("client ") else endpoint


def _served(made_from: Mapping[str, Any]) -> Iterator[str]:
    for served in _mappings(made_from.get("served")):
        model, fingerprint = _text(served.get("model")), _text(served.get("system_fingerprint"))
        words = [model or "a model without a name", *([f"({fingerprint})"] if fingerprint else [])]
        if model or fingerprint:
            yield " ".join(words)


def _versions(result: Mapping[str, Any], made_from: Mapping[str, Any]) -> dict[str, str]:
    # Earlier versions tell their own alone.
    own = {"mind2web2": _mapping(result.get("run")).get("version")}
    found = {**own, **_mapping(made_from.get("versions"))}
    return {str(name): version for name, version in found.items() if isinstance(version, str)}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [item for item in _items(value) if isinstance(item, dict)]


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
