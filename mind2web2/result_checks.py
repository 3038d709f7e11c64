"""Whether a result is what a run leaves: its score follows from its tree, that from its evidence; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from mind2web2.aggregation import Outcome, aggregate
from mind2web2.claim_judging import BinaryEvalResult
from mind2web2.evidence import PageCheck, Vote
from mind2web2.evidence_verdicts import evidence_faults, implied_verdict
from mind2web2.injection.invisible import made_visible
from mind2web2.judgment_reading import StoredReply
from mind2web2.metrics import is_score
from mind2web2.prompts.blocks import encodable
from mind2web2.provenance import Provenance
from mind2web2.seals import has_seal, is_seal_broken
from mind2web2.staleness import CHANGED
from mind2web2.written_tree import (
    TreeShapeError,
    WrittenNode,
    is_same,
    is_same_score,
    judged_pages,
    keeps_earlier,
    only_tree,
    written_tree,
)

_PREREQUISITE = re.compile(r"not judged, because '(.*)' (?:failed|was skipped)", re.DOTALL)
_UNDECIDED = Outcome(0.0, "initialized")
_NO_OPINION = BinaryEvalResult(reasoning="", result=False)
_RANGES = {"passed": (1.0, 1.0), "failed": (0.0, 0.0), "skipped": (0.0, 0.0)}


OTHER_SCORE = "its script returned another score than its tree comes to: "

Kind = Literal["wrong", "stale", "missing"]


class Finding(NamedTuple):
    """What a check has found, in one line.

    Args:
        kind: ``wrong`` is what no run leaves behind, or a score that a script returned against its tree;
            ``stale``, what has changed since; ``missing``, what
            cannot be checked, or scored, as something is not there.
    """

    kind: Kind
    text: str


class CastVote(NamedTuple):
    """A vote of a result, and what it is about; without a page, about the answer."""

    leaf: str
    claim: str | None
    url: str | None
    vote: Vote


def result_faults(result: Mapping[str, Any], made_from: Provenance | None) -> Iterator[str]:
    """Yield, one line each, what cannot be so in a result that a run has left.

    Args:
        made_from: what it says it was made from; ``None`` where it does not, as earlier tools.
    """
    # What its version kept no record of cannot be asked of a result.
    is_recorded = made_from is not None and bool(made_from.versions)
    if is_seal_broken(result):
        yield CHANGED
    elif is_recorded and not has_seal(result):
        yield "its own digest (run.content_sha256) is gone"
    score = result.get("final_score")
    if not is_score(score):
        yield f"final_score {score!r} is no number from 0 to 1"
    if only_tree(result) is None:
        return
    try:
        root = written_tree(only_tree(result))
    except TreeShapeError as error:
        yield f"its tree cannot be read: {error}"
        return
    yield from tree_faults(root)
    if is_score(score) and not is_same_score(score, aggregate(root)[id(root)].score):
        # As long as its seal holds, it is what the script returned.
        told = OTHER_SCORE if has_seal(result) and not is_seal_broken(result) else ""
        yield f"{told}final_score is {score:g}, and by its tree {aggregate(root)[id(root)].score:g}"
    yield from _statistics_faults(result, root)
    for leaf in _leaves(root):
        yield from (f"leaf '{leaf.id}': {fault}" for fault in _leaf_faults(leaf, is_recorded))
    yield from _prerequisite_faults(root, is_earlier_kept=keeps_earlier(result))
    if made_from is not None:
        yield from _provenance_faults(result, root, made_from)


def tree_faults(root: WrittenNode) -> Iterator[str]:
    """Yield where a tree breaks the rules of scoring.md."""
    outcomes = aggregate(root)
    for node in root.walk():
        expected = outcomes[id(node)]
        if not is_same(node.shown, expected):
            yield f"node '{node.id}' is {_in_words(node.shown)}, and by the leaves {_in_words(expected)}"
        if node.superseded is not None and (node.children or is_same(node.superseded, expected)):
            yield f"node '{node.id}' is said to be superseded, which it is not"
        for child in node.children:
            if node.critical and not child.critical:
                yield f"node '{child.id}' is not critical, under critical '{node.id}'"


def _leaf_faults(leaf: WrittenNode, is_recorded: bool) -> Iterator[str]:
    verdict, evidence = leaf.verdict, leaf.evidence
    if evidence is None:
        if is_recorded and verdict != _UNDECIDED:
            yield f"{_in_words(verdict)} without any evidence"
        elif not _agrees(verdict):
            yield f"score {verdict.score:g} does not go with status {verdict.status}"
        return
    implied = implied_verdict(evidence)
    # A script may set one half of a verdict, and leave the other as it was.
    if implied is not None and leaf.overruled is None and not _agrees(verdict):
        yield f"score {verdict.score:g} does not go with status {verdict.status}"
    if leaf.overruled is None:
        if implied is not None and not is_same(verdict, implied):
            yield f"{_in_words(verdict)}, and by its evidence {_in_words(implied)}"
    elif implied is None or not is_same(leaf.overruled, implied) or is_same(verdict, implied):
        yield "said to be overruled by the script, against its evidence"
    yield from evidence_faults(evidence, is_recorded=is_recorded)


def unexplained_skips(result: Mapping[str, Any]) -> list[str]:
    """Return the leaves that a result of an earlier version calls skipped, without what would show why.

    What they depend on does not block as it stands; it may have, before it was decided otherwise.
    """
    if keeps_earlier(result):
        return []
    try:
        root = written_tree(only_tree(result))
    except TreeShapeError:
        return []
    return [leaf.id for leaf, named in _skipped_leaves(root) if named is not None and _block_no_more(named)]


def _prerequisite_faults(root: WrittenNode, *, is_earlier_kept: bool) -> Iterator[str]:
    for leaf, named in _skipped_leaves(root):
        if named is None or (is_earlier_kept and _block_no_more(named)):
            yield f"leaf '{leaf.id}': skipped, though nothing that it depends on has failed"


def _skipped_leaves(root: WrittenNode) -> Iterator[tuple[WrittenNode, list[WrittenNode] | None]]:
    """Yield each leaf that was skipped, and the nodes with the name of what it is said to be skipped for.

    ``None`` stands for no name at all.
    """
    by_id: dict[str, list[WrittenNode]] = {}
    for node in root.walk():
        by_id.setdefault(node.id, []).append(node)
    for leaf in _leaves(root):
        if leaf.evidence is not None and leaf.evidence.decided_by == "prerequisite":
            named = _PREREQUISITE.fullmatch(leaf.evidence.reason or "")
            yield leaf, None if named is None else by_id.get(named[1], [])


def _block_no_more(named: Sequence[WrittenNode]) -> bool:
    # A script may name a node as a prerequisite that is no part of the tree.
    return bool(named) and not any(map(_may_block, named))


def _may_block(node: WrittenNode) -> bool:
    # It may have been a leaf then, or undecided but for the script.
    if node.children or node.evidence is None or node.evidence.decided_by == "script":
        return True
    return any(each is not None and each.blocks for each in (node.verdict, node.overruled, node.earlier))


def _statistics_faults(result: Mapping[str, Any], root: WrittenNode) -> Iterator[str]:
    if "tree_statistics" in result:
        counted = _statistics(root)
        if result["tree_statistics"] != counted:
            yield f"tree_statistics are {result['tree_statistics']}, and by the tree {counted}"
    if "undecided_leaves" in result:
        undecided = [leaf.id for leaf in _leaves(root) if leaf.verdict.status == "initialized"]
        if result["undecided_leaves"] != undecided:
            yield f"undecided_leaves are {result['undecided_leaves']}, and by the tree {undecided}"


def _statistics(root: WrittenNode) -> dict[str, int]:
    levels = {id(root): 0}
    leaf_count = 0
    for node in root.walk():
        leaf_count += not node.children
        levels.update((id(child), levels[id(node)] + 1) for child in node.children)
    return {"depth": max(levels.values()), "total_nodes": len(levels), "leaf_nodes": leaf_count}


def _provenance_faults(result: Mapping[str, Any], root: WrittenNode, made_from: Provenance) -> Iterator[str]:
    model = made_from.judge.model
    votes = list(votes_in(root))
    if votes and result.get("judge_model") != model:
        yield f"judge_model is {result.get('judge_model')!r}, and by its provenance {model!r}"
    yield from sorted(set(_page_faults(root, made_from)))
    if not made_from.versions:
        return
    yield from _run_faults(result)
    unnamed = sorted({cast.leaf for cast in votes if cast.vote.judgment is None})
    for leaf in unnamed:
        yield f"leaf '{leaf}': a vote that names no judgment"
    served = sum(each.judgments for each in made_from.served)
    usage = result.get("judge_usage")
    asked = usage.get("judgments") if isinstance(usage, dict) else None
    if asked != served or served < len({cast.vote.judgment for cast in votes}):
        yield f"{asked} judgments are counted, {served} in its provenance, and {len(votes)} votes are there"


def _page_faults(root: WrittenNode, made_from: Provenance) -> Iterator[str]:
    for check in judged_pages(root):
        if check.url not in made_from.pages and check.url not in made_from.other_pages:
            yield f"{check.url} was judged, and its provenance does not have it"
        elif check.page is not None and not _is_known(check, made_from):
            yield f"{check.url} was judged as another page than its provenance has"


def _is_known(check: PageCheck, made_from: Provenance) -> bool:
    sha256 = None if check.page is None else check.page.sha256
    is_looked_up = check.url in made_from.pages and made_from.pages[check.url] == sha256
    return is_looked_up or sha256 in made_from.other_pages.get(check.url, ())


def _run_faults(result: Mapping[str, Any]) -> Iterator[str]:
    run, usage = result.get("run"), result.get("judge_usage")
    if not isinstance(run, dict) or not isinstance(usage, dict):
        return
    requests, retries, judgments = (
        run.get("judge_requests"),
        run.get("judge_retries"),
        usage.get("judgments"),
    )
    expected = requests - judgments if isinstance(requests, int) and isinstance(judgments, int) else None
    if expected is None or retries != expected:
        yield f"{retries} retries do not go with {requests} requests for {judgments} judgments"


def votes_in(root: WrittenNode) -> Iterator[CastVote]:
    """Yield every vote in a tree."""
    for node in root.walk():
        evidence = node.evidence
        if evidence is None:
            continue
        for vote in evidence.votes:
            yield CastVote(node.id, evidence.claim, None, vote)
        for check in evidence.pages:
            for vote in check.votes:
                yield CastVote(node.id, evidence.claim, check.url, vote)


def vote_fault(cast: CastVote, replies: Sequence[StoredReply]) -> str | None:
    """Return how a vote differs from what is stored of its judgment, ``None`` where it does not.

    Args:
        replies: those with the judgment's key, one a server; at least one.
    """
    faults = [_reply_fault(cast, reply) for reply in replies]
    return None if None in faults else faults[0]


def _reply_fault(cast: CastVote, reply: StoredReply) -> str | None:
    what = f"leaf '{cast.leaf}', vote {cast.vote.trial}"
    if cast.url is not None:
        what += f" on {cast.url}"
    about = ("verify", _as_shown(cast.claim), _as_shown(cast.url), cast.vote.trial)
    if (reply.purpose, _as_shown(reply.claim), _as_shown(reply.page), reply.trial) != about:
        return f"{what}: the judgment that it names is about something else"
    declined = reply.text if reply.outcome == "declined" else None
    try:
        said = _NO_OPINION if declined is not None else BinaryEvalResult.model_validate_json(reply.text)
    except ValidationError:
        return f"{what}: its judgment, as stored, is no verdict"
    quote = "" if cast.vote.quote is None else cast.vote.quote.text
    vote = (cast.vote.supported, cast.vote.reasoning, quote, cast.vote.declined)
    if vote != (said.result, said.reasoning, said.quote if said.quote.strip() else "", declined):
        return f"{what}: it is not what the judge said, which is stored"
    return None


def _as_shown(text: str | None) -> str | None:
    # Texts that the judge is shown alike are one question, whatever invisible characters they have.
    return None if text is None else made_visible(encodable(text))


def _leaves(root: WrittenNode) -> Iterator[WrittenNode]:
    return (node for node in root.walk() if not node.children)


def _agrees(verdict: Outcome) -> bool:
    low, high = _RANGES.get(verdict.status, (0.0, 1.0))
    return low <= verdict.score <= high


def _in_words(outcome: Outcome) -> str:
    return f"{outcome.status} ({outcome.score:g})"
