"""The content of result files: score and its bounds, rubric tree, verdicts, judge and versions; pure.

Every function takes the content of a result file, or one leaf of its tree, and accepts whatever other tools
or scripts wrote there: a field that is missing or malformed says nothing.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

from mind2web2.rubric.verdicts import (
    TO_THIS_JUDGE,
    Outcome,
    QuoteMatch,
    Status,
    aggregate,
    blocking_leaf_id,
    is_score,
)
from mind2web2.utils.json_fields import items, mapping, mappings

# Sums of the same numbers may differ by their last digits from one Python to the next.
_TOLERANCE = 1e-9
# The field of a result with the bounds of its score.
SCORE_BOUNDS = "score_bounds"
# ``run.tree_format`` of results: since 2, a tree keeps a leaf's own verdict beside the one that a sequence
# or a script put in its place.
TREE_FORMAT = 2


@dataclass(frozen=True, slots=True)
class WrittenNode:
    """A node of a result's tree.

    Args:
        verdict: a leaf's own, whatever a sequence put in its place.
        fields: the node as it is written.
    """

    id: str
    critical: bool
    strategy: str
    verdict: Outcome
    children: list[WrittenNode] = field(default_factory=list)
    fields: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def walk(self) -> Iterator[WrittenNode]:
        """Yield this node and all below it, each before its children, in rubric order."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))


def written_tree(result: Mapping[str, Any]) -> WrittenNode | None:
    """Return the tree of a result, however deep; ``None`` if there is not exactly one, or it is malformed."""
    parts = result.get("eval_breakdown")
    if not isinstance(parts, list) or len(parts) != 1:
        return None
    fields = mapping(parts[0]).get("verification_tree")
    root = _node(fields)
    stack = [(root, fields)]
    while stack:
        node, fields = stack.pop()
        children = mapping(fields).get("children", [])
        if node is None or not isinstance(children, list):
            return None
        for child_fields in children:
            child = _node(child_fields)
            if child is None:
                return None
            node.children.append(child)
            stack.append((child, child_fields))
    return root


def _node(fields: object) -> WrittenNode | None:
    own = mapping(fields)
    name, critical, strategy = own.get("id"), own.get("critical"), own.get("strategy")
    shown = own if own.get("superseded") is None else mapping(own["superseded"])
    score, status = shown.get("score"), shown.get("status")
    is_sound = isinstance(name, str) and isinstance(critical, bool) and strategy in ("parallel", "sequential")
    if not is_sound or not is_score(score) or status not in get_args(Status):
        return None
    verdict = Outcome(score, cast(Status, status))
    return WrittenNode(str(name), bool(critical), str(strategy), verdict, fields=own)


def score_by_tree(result: Mapping[str, Any]) -> float | None:
    """Return the score that follows from the leaves of a result, ``None`` where it has no sound tree."""
    root = written_tree(result)
    return None if root is None else aggregate(root)[id(root)].score


def other_score_by_tree(result: Mapping[str, Any]) -> float | None:
    """Return the score that follows from the leaves of a result if it differs from its own score."""
    score, by_tree = result.get("final_score"), score_by_tree(result)
    if by_tree is None or not is_score(score):
        return None
    return None if math.isclose(score, by_tree, rel_tol=0.0, abs_tol=_TOLERANCE) else by_tree


def other_pages(
    result: Mapping[str, Any], pages: Mapping[str, str | None]
) -> dict[str, tuple[str | None, ...]]:
    """Return the digests of judged pages that differ from those in the task's cache, by address.

    Args:
        pages: digests of the pages that the script looked up in the cache.
    """
    found: dict[str, set[str | None]] = {}
    for check in (check for leaf in leaves_of(result) for check in _checks(leaf) if _votes(check)):
        url, sha256 = str(check.get("url")), _text(mapping(check.get("page")).get("sha256"))
        if url not in pages or pages[url] != sha256:
            found.setdefault(url, set()).add(sha256)
    return {url: tuple(sorted(digests, key=str)) for url, digests in sorted(found.items())}


QUOTE_MATCHES: tuple[QuoteMatch, ...] = get_args(QuoteMatch)
Reservation = Literal["page_not_had", "suspect_page", "declined", "flagged", "error"]

# Values of ``decided_by`` of claims; a script or a prerequisite decides other leaves.
JUDGED = ("judge", "page", "error")


@dataclass(frozen=True, slots=True)
class ClaimFacts:
    """One verdict on a claim.

    Args:
        reservations: reasons not to rely on it.
        is_voted: the judge voted more than once on the same page, or on the answer.
        is_split: those votes differ; declined ones do not count.
        quotes: for each passage that the judge quoted, whether it was found.
    """

    reservations: frozenset[Reservation]
    is_voted: bool
    is_split: bool
    quotes: tuple[QuoteMatch, ...] = ()

    @property
    def is_weak(self) -> bool:
        """Tell whether the evidence is too weak to rely on the verdict."""
        return self.is_split or "not_found" in self.quotes or bool(self.reservations - {"flagged"})


@dataclass(frozen=True, slots=True)
class ResultFacts:
    """What one result says about its making and its verdicts.

    Args:
        judge: model and parameters; ``None`` where it names no judge.
        server: the judge's server, as far as its name tells servers apart.
        served: the models that the server reported.
        versions: of this package, Python and libraries, by name.
        script: version folder and file name of the eval script.
        in_doubt: something temporary may have changed the score; the next run judges the answer again.
        capture_days: first and last day on which a judged page was captured, ISO 8601; empty if unknown.
        is_explained: it has evidence for its verdicts.
        is_treeless: its score comes from the script alone, without a rubric tree.
        is_off_tree: its script returned another score than its rubric tree gives.
        is_flagged: the answer's text tries to instruct the judge.
        is_barred: the answer cites a barred source, or was judged on one.
        claims: verdicts of the judge, and on unavailable pages.
        extractions: the reservations of each extraction that has any.
        bounds: of the score, by its weak verdicts; ``None`` where the result has none.
    """

    judge: str | None = None
    server: str | None = None
    served: frozenset[str] = frozenset()
    versions: Mapping[str, str] = field(default_factory=dict)
    script: str | None = None
    script_sha256: str | None = None
    in_doubt: bool = False
    capture_days: tuple[str, ...] = ()
    is_explained: bool = False
    is_treeless: bool = False
    is_off_tree: bool = False
    is_flagged: bool = False
    is_barred: bool = False
    claims: tuple[ClaimFacts, ...] = ()
    extractions: tuple[frozenset[Reservation], ...] = ()
    bounds: tuple[float, float] | None = None


NO_FACTS = ResultFacts()


def result_facts(result: Mapping[str, Any]) -> ResultFacts:
    """Return the facts that a result's content states."""
    made_from = mapping(result.get("provenance"))
    leaves = list(leaves_of(result))
    return ResultFacts(
        judge=_judge(result, made_from),
        server=_server(made_from),
        served=frozenset(_served(made_from)),
        versions=_versions(result, made_from),
        script=_text(made_from.get("script")),
        script_sha256=_text(made_from.get("script_sha256")),
        in_doubt=bool(result.get("doubts")),
        capture_days=_capture_days(leaves),
        is_explained=any(_evidence(leaf) for leaf in leaves),
        is_treeless=not leaves,
        is_off_tree=other_score_by_tree(result) is not None,
        is_flagged=bool(result.get("answer_flags")),
        is_barred=bool(barred_sources(result)),
        claims=tuple(leaf_facts(leaf) for leaf in leaves if _evidence(leaf).get("decided_by") in JUDGED),
        extractions=tuple(
            found for record in mappings(result.get("extractions")) if (found := _of_extraction(record))
        ),
        bounds=stored_bounds(result),
    )


def stored_bounds(result: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the bounds that a result states for its score, ``None`` where it has none."""
    found = mapping(result.get(SCORE_BOUNDS))
    low, high = found.get("low"), found.get("high")
    return (low, high) if is_score(low) and is_score(high) and low <= high else None


def leaves_of(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the leaves of a result's rubric trees, in rubric order."""
    parts = reversed(mappings(result.get("eval_breakdown")))
    stack: list[Any] = [part.get("verification_tree") for part in parts]
    while stack:
        node = mapping(stack.pop())
        children = mappings(node.get("children"))
        if node and not children:
            yield node
        stack.extend(reversed(children))


def pages_not_had(leaf: Mapping[str, Any]) -> list[str]:
    """Return the unavailable pages of a claim."""
    return [str(check.get("url")) for check in _checks(leaf) if check.get("outcome") == "unavailable"]


def pages_not_read(result: Mapping[str, Any]) -> list[str]:
    """Return the page of each extraction that is empty because its page is unavailable."""
    records = mappings(result.get("extractions"))
    return [str(record.get("url")) for record in records if record.get("unavailable")]


def barred_sources(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the barred sources that the answer cites or was judged on: ``url``, ``rule`` and ``shown``."""
    return mappings(mapping(result.get("barred")).get("sources"))


def script_faults(result: Mapping[str, Any]) -> list[str]:
    """Return the script's mistakes that may have cost the answer points, one line each."""
    recorded = result.get("script_faults")
    if isinstance(recorded, list):
        return [str(fault) for fault in recorded]
    # Results of earlier versions name neither script nor line.
    undecided = (
        f"leaf '{name}' is never judged, and counts 0" for name in items(result.get("undecided_leaves"))
    )
    ignored = (f"unknown keyword '{name}' is ignored" for name in items(result.get("ignored_arguments")))
    return [*undecided, *ignored]


def refused_pages(result: Mapping[str, Any]) -> list[str]:
    """Return the pages that were not captured because their addresses are private."""
    return [str(url) for url in items(mapping(result.get("provenance")).get("refused_pages"))]


def refused_downloads(result: Mapping[str, Any]) -> list[str]:
    """Return the files that the script did not get because their addresses are private."""
    return [str(url) for url in items(mapping(result.get("provenance")).get("refused_downloads"))]


def decisive_troubles(leaf: Mapping[str, Any]) -> frozenset[str]:
    """Return the kinds of trouble of the pages that decided a leaf."""
    pages = [mapping(check.get("page")) for check in _decisive(_checks(leaf))]
    return frozenset(str(kind) for page in pages for kind in items(page.get("troubles")))


def is_shown_in_part(leaf: Mapping[str, Any]) -> bool:
    """Tell whether the judge got only some of the images of one of the leaf's pages."""
    pages = [mapping(check.get("page")) for check in _checks(leaf)]
    return any(TO_THIS_JUDGE in str(note) for page in pages for note in items(page.get("notes")))


def declined_counts(result: Mapping[str, Any]) -> tuple[int, int]:
    """Return the numbers of votes and of extractions that the judge declined."""
    entries = [entry for leaf in leaves_of(result) for entry in (_evidence(leaf), *_checks(leaf))]
    votes = sum(bool(vote.get("declined")) for entry in entries for vote in _votes(entry))
    return votes, sum(bool(record.get("declined")) for record in mappings(result.get("extractions")))


def quote_counts(result: Mapping[str, Any]) -> dict[str, int]:
    """Return how many quoted passages were found, approximately found, and not found."""
    entries = (entry for leaf in leaves_of(result) for entry in (_evidence(leaf), *_checks(leaf)))
    found = Counter(match for entry in entries for match in _matches(_votes(entry)))
    return {match: found[match] for match in QUOTE_MATCHES}


def _matches(votes: Iterable[Mapping[str, Any]]) -> Iterator[QuoteMatch]:
    for vote in votes:
        match = mapping(vote.get("quote")).get("match")
        if match in QUOTE_MATCHES:
            yield match


def _decisive(checks: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the check of the page that supports a leaf, else those of all pages that the judge saw."""
    shown = [check for check in checks if check.get("page")]
    return [check for check in shown if check.get("outcome") == "supported"] or shown


def leaf_facts(leaf: Mapping[str, Any]) -> ClaimFacts:
    """Return how far a leaf's verdict can be relied on."""
    # Looked up once each: a benchmark has tens of thousands of claims.
    evidence = _evidence(leaf)
    checks = mappings(evidence.get("pages"))
    groups = [_votes(entry) for entry in (evidence, *checks)]
    opinions = [
        [bool(vote.get("supported")) for vote in votes if not vote.get("declined")] for votes in groups
    ]
    votes = [vote for group in groups for vote in group]
    return ClaimFacts(
        frozenset(_reservations(leaf, evidence, checks, votes)),
        is_voted=any(len(group) > 1 for group in opinions),
        is_split=any(len(set(group)) > 1 for group in opinions),
        quotes=tuple(_matches(votes)),
    )


def _reservations(
    leaf: Mapping[str, Any],
    evidence: Mapping[str, Any],
    checks: Sequence[Mapping[str, Any]],
    votes: Sequence[Mapping[str, Any]],
) -> Iterator[Reservation]:
    # The leaf's own verdict, whatever a sequence put in its place.
    status = (mapping(leaf.get("superseded")) or leaf).get("status")
    decisive = _decisive(checks)
    if evidence.get("decided_by") == "error":
        yield "error"
    if any(mapping(check.get("page")).get("troubles") for check in decisive):
        yield "suspect_page"
    if evidence.get("flags") or any(_is_flagged(check) for check in decisive):
        yield "flagged"
    if status == "passed":
        return
    # Unavailable pages and refusals count against a claim: one that passes does so without them.
    if any(check.get("outcome") == "unavailable" for check in checks):
        yield "page_not_had"
    if any(vote.get("declined") for vote in votes):
        yield "declined"


def _of_extraction(record: Mapping[str, Any]) -> frozenset[Reservation]:
    page = mapping(record.get("page"))
    found: dict[Reservation, object] = {
        "page_not_had": record.get("unavailable"),
        "declined": record.get("declined"),
        "suspect_page": page.get("troubles"),
        "flagged": _is_flagged(record),
    }
    return frozenset(kind for kind, is_so in found.items() if is_so)


def _is_flagged(entry: Mapping[str, Any]) -> bool:
    return bool(mapping(entry.get("page")).get("flags"))


def _votes(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return mappings(entry.get("votes"))


def _checks(leaf: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return mappings(_evidence(leaf).get("pages"))


def _evidence(leaf: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(leaf.get("evidence"))


def _judge(result: Mapping[str, Any], made_from: Mapping[str, Any]) -> str | None:
    model = _text(result.get("judge_model"))
    judge = mapping(made_from.get("judge"))
    if not judge:
        return None if model is None else f"{model}, parameters not recorded"
    names = ("temperature", "reasoning_effort", "max_images", "extra_body")
    parameters = [f"{name}={judge[name]}" for name in names if judge.get(name) is not None]
    return " ".join([model or str(judge.get("model")), *parameters])


def _server(made_from: Mapping[str, Any]) -> str | None:
    endpoint = _text(mapping(made_from.get("judge")).get("endpoint"))
    # A replay takes judgments of any server; a caller's own client has another name in each process.
    return None if endpoint is None or endpoint == "replay" or endpoint.startswith("client ") else endpoint


def _served(made_from: Mapping[str, Any]) -> Iterator[str]:
    for served in mappings(made_from.get("served")):
        model, fingerprint = _text(served.get("model")), _text(served.get("system_fingerprint"))
        words = [model or "a model without a name", *([f"({fingerprint})"] if fingerprint else [])]
        if model or fingerprint:
            yield " ".join(words)


def _versions(result: Mapping[str, Any], made_from: Mapping[str, Any]) -> dict[str, str]:
    # Earlier versions record only their own version.
    own = {"mind2web2": mapping(result.get("run")).get("version")}
    found = {**own, **mapping(made_from.get("versions"))}
    return {str(name): version for name, version in found.items() if isinstance(version, str)}


def _capture_days(leaves: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    pages = [mapping(check.get("page")) for leaf in leaves for check in _checks(leaf)]
    days = [moment[:10] for page in pages if (moment := _text(page.get("captured_at")))]
    return (min(days), max(days)) if days else ()


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


# Bounds of a score, by its verdicts on weak evidence
#
# Scores never fall when a leaf passes instead of failing, and fewer leaves are skipped then. So the score is
# least where every weak verdict is a failure, and greatest where each is a pass. A leaf that was skipped
# because of a weak failure has no verdict: it fails in one case and passes in the other.

_PASSED, _FAILED = Outcome(1.0, "passed"), Outcome(0.0, "failed")


def score_bounds(result: Mapping[str, Any]) -> dict[str, float] | None:
    """Return the bounds of a result's score, ``None`` where it does not follow from one rubric tree.

    Weak are verdicts on missing or suspect pages, with a quotation that was not found, with votes that differ
    or that the judge declined, and after an error. The script's own decisions stay as they are. Unknown are
    leaves that were skipped because a weak leaf failed.
    """
    root, score = written_tree(result), result.get("final_score")
    if root is None or not is_score(score) or other_score_by_tree(result) is not None:
        return None
    leaves = [node for node in root.walk() if not node.children]
    weak = {id(leaf) for leaf in leaves if _is_weak(leaf)}
    if not weak:
        return {"low": score, "high": score, "weak_leaves": 0, "unknown_leaves": 0}
    unknown = unblocked(leaves, weak)
    blocking = weak | {id(leaf) for leaf in leaves if leaf.verdict.blocks}
    failed = blocked(root, leaves, blocking)
    low = aggregate(root, dict.fromkeys(failed, _FAILED))[id(root)].score
    high = aggregate(root, dict.fromkeys(weak | unknown, _PASSED))[id(root)].score
    return {"low": low, "high": high, "weak_leaves": len(weak), "unknown_leaves": len(unknown)}


def _is_weak(leaf: WrittenNode) -> bool:
    return _evidence(leaf.fields).get("decided_by") in JUDGED and leaf_facts(leaf.fields).is_weak


def unblocked(leaves: Sequence[WrittenNode], weak: set[int]) -> set[int]:
    """Return the skipped leaves that are judged if all these leaves pass, by ``id(leaf)``."""
    counts = Counter(leaf.id for leaf in leaves)
    by_id = {leaf.id: leaf for leaf in leaves if counts[leaf.id] == 1}
    passes: dict[int, bool] = {}
    for leaf in leaves:
        # From a skipped leaf to the one that blocked it, and so on, to one that is known.
        chain: list[WrittenNode] = []
        at: WrittenNode | None = leaf
        while at is not None and id(at) not in passes and _is_skipped(at):
            chain.append(at)
            passes[id(at)] = True
            at = by_id.get(blocking_leaf_id(str(_evidence(at.fields).get("reason"))) or "")
        ends = at is None or id(at) in weak or passes.get(id(at), not at.verdict.blocks)
        passes.update((id(each), ends) for each in (*chain, *([at] if at is not None else [])))
    return {id(leaf) for leaf in leaves if _is_skipped(leaf) and passes[id(leaf)]}


def _is_skipped(leaf: WrittenNode) -> bool:
    return leaf.verdict.status == "skipped" and _evidence(leaf.fields).get("decided_by") == "prerequisite"


def blocked(root: WrittenNode, leaves: Sequence[WrittenNode], failing_leaves: Iterable[int]) -> set[int]:
    """Return the leaves that fail, by ``id(leaf)``, with those that are then skipped by name."""
    failed = set(failing_leaves)
    named = {id(leaf): _evidence(leaf.fields).get("prerequisites") or () for leaf in leaves}
    if not any(named.values()):
        # Other prerequisites are the gates and sequences that aggregation applies itself.
        return failed
    by_id: dict[str, list[WrittenNode]] = defaultdict(list)
    for node in root.walk():
        by_id[node.id].append(node)
    is_changed = True
    while is_changed:
        failing = _with_failed_leaf(root, failed)
        skipped = _behind(root, failing)
        found = {
            id(leaf)
            for leaf in leaves
            if id(leaf) in skipped
            or any(id(node) in failing for name in named[id(leaf)] for node in by_id.get(str(name), ()))
        }
        is_changed = not found <= failed
        failed |= found
    return failed


def _with_failed_leaf(root: WrittenNode, failed: set[int]) -> set[int]:
    found = set(failed)
    for node in reversed(list(root.walk())):
        if any(id(child) in found for child in node.children):
            found.add(id(node))
    return found


def _behind(root: WrittenNode, failing: set[int]) -> set[int]:
    """Return the nodes beside a failing critical node or after a failing one in a sequence, and all below."""
    found: set[int] = set()
    for node in root.walk():
        places = [place for place, child in enumerate(node.children) if id(child) in failing]
        gates = [place for place in places if node.children[place].critical]
        for place, child in enumerate(node.children):
            is_late = node.strategy == "sequential" and bool(places) and places[0] < place
            if id(node) in found or is_late or (gates and gates != [place]):
                found.add(id(child))
    return found
