"""Whether a result says what the stored judgments say: votes, models served, tokens, dollars, times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mind2web2.errors import UsageError
from mind2web2.judgment import JudgmentSource
from mind2web2.judgment_files import source_of
from mind2web2.judgment_reading import JudgmentLookup, StoredReply, lookup_in
from mind2web2.judgments import FILE_NAME
from mind2web2.provenance import Provenance
from mind2web2.recorded_judge import REPLAY_ENDPOINT
from mind2web2.result_checks import CastVote, Finding, vote_fault, votes_in
from mind2web2.store_cures import CHECKING_NAMED, CHECKING_OWN
from mind2web2.usage_checks import usage_faults
from mind2web2.utils.names import name_list
from mind2web2.written_tree import TreeShapeError, only_tree, written_tree

NOT_STORED = "the judgments that it names are not stored"
NO_STORE = f"{NOT_STORED}: there is no store"
NO_FILE = f"{NOT_STORED}: the file that it was replayed from is not there"


@dataclass(frozen=True, slots=True)
class Judgments:
    """Where votes are looked up.

    Args:
        is_own: it is the store that the agent's judgments are kept in.
        is_named: the user named it.
    """

    lookup: JudgmentLookup
    is_own: bool
    is_named: bool = False


class StoreFindings(NamedTuple):
    """What the stored judgments gave away; ``is_contradicted`` if a vote is not what is stored of it."""

    findings: tuple[Finding, ...] = ()
    is_contradicted: bool = False


def judgments_of(eval_results_root: Path, agent_name: str, path: Path | None) -> Judgments | None:
    """Return where an agent's judgments are looked up, ``None`` where it has none.

    Args:
        path: a store or an exported ``.jsonl`` file in place of the agent's own store.

    Raises:
        UsageError: the file cannot be read.
    """
    own = eval_results_root / agent_name / FILE_NAME
    if path is None and not own.is_file():
        return None
    file = path or own
    lookup = lookup_in(file, CHECKING_OWN if path is None else CHECKING_NAMED)
    return Judgments(lookup, is_own=file.resolve() == own.resolve(), is_named=path is not None)


def replayed_judgments(source: JudgmentSource) -> tuple[Judgments | None, tuple[Finding, ...]]:
    """Return where the judgments of a replay are looked up, and what is wrong with their file."""
    path = Path(source.path)
    if not path.is_file():
        return None, (Finding("missing", f"{NO_FILE}: {source.path}"),)
    try:
        judgments = Judgments(lookup_in(path, CHECKING_NAMED), is_own=False)
    except UsageError as error:
        return None, (Finding("missing", f"{NOT_STORED}: {error}"),)
    if source_of(path).sha256 != source.sha256:
        return judgments, (Finding("stale", f"judgments: {source.path} has changed since it was replayed"),)
    return judgments, ()


def store_findings(
    result: Mapping[str, Any],
    made_from: Provenance,
    judgments: Judgments | None,
    of_file: Sequence[Finding] = (),
) -> StoreFindings:
    """Return how a result differs from the judgments that it names.

    Args:
        judgments: where they are looked up; ``None`` where nothing is stored.
        of_file: what is wrong with their file.
    """
    try:
        votes = list(votes_in(written_tree(only_tree(result))))
    except TreeShapeError:
        return StoreFindings()
    found = list(of_file)
    if any(cast.vote.judgment is None for cast in votes) and not made_from.versions:
        found.append(Finding("missing", "its votes name no judgments, so that they cannot be checked"))
    # By what they decided, so that a reader finds them.
    named = [(cast.leaf, cast.vote.judgment) for cast in votes if cast.vote.judgment is not None]
    named += _extractions(result)
    keys = {key for _, key in named}
    if judgments is None:
        found += [Finding("missing", NO_STORE)] if keys and not found else []
        return StoreFindings(tuple(found))
    stored = _of_judge(judgments.lookup.replies(keys), made_from)
    if not _is_record_of(made_from, judgments):
        stored = _of_evaluation(stored, result, judgments)
    if keys - stored.keys():
        found.append(_lacking(named, keys - stored.keys()))
    faults = list(_vote_faults(votes, stored, _moment(result, "judged_to")))
    found += faults
    of_each = [stored.get(key, ()) for key in sorted(keys)]
    found += [Finding("wrong", fault) for fault in usage_faults(result, made_from, of_each)]
    return StoreFindings(tuple(found), any(fault.kind == "wrong" for fault in faults))


def _lacking(named: Sequence[tuple[str, str]], lacking: set[str]) -> Finding:
    where = name_list({what for what, key in named if key in lacking})
    return Finding("missing", f"{NOT_STORED}, {len(lacking)} of {len({key for _, key in named})}: {where}")


def _is_record_of(made_from: Provenance, judgments: Judgments) -> bool:
    # Which file a replay has answered from is not known.
    return judgments.is_own and made_from.judge.endpoint != REPLAY_ENDPOINT


def _vote_faults(
    votes: Sequence[CastVote], stored: Mapping[str, Sequence[StoredReply]], judged_to: str | None
) -> Iterator[Finding]:
    for cast in votes:
        replies = stored.get(cast.vote.judgment or "", ())
        fault = vote_fault(cast, replies) if replies else None
        if fault is None:
            continue
        if judged_to is not None and all(reply.created > judged_to for reply in replies):
            yield Finding("stale", "judge: asked anew since")
        else:
            yield Finding("wrong", fault)


def _extractions(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    records = result.get("extractions")
    records = [record for record in records if isinstance(record, dict)] if isinstance(records, list) else []
    return [(str(record.get("name")), str(record["judgment"])) for record in records if "judgment" in record]


def _of_judge(
    replies: Mapping[str, Sequence[StoredReply]], made_from: Provenance
) -> dict[str, Sequence[StoredReply]]:
    """Return the replies of the server that judged; a replay's are any server's."""
    endpoint = made_from.judge.endpoint
    found: dict[str, Sequence[StoredReply]] = {}
    for key, some in replies.items():
        of_server = [reply for reply in some if endpoint in (REPLAY_ENDPOINT, reply.endpoint)]
        if of_server:
            found[key] = of_server
    return found


def _of_evaluation(
    replies: Mapping[str, Sequence[StoredReply]], result: Mapping[str, Any], judgments: Judgments
) -> dict[str, Sequence[StoredReply]]:
    """Return the replies that a result may rest on; those of another evaluation say nothing about it."""
    first, last = _moment(result, "judged_from") or "", _moment(result, "judged_to")
    # Where the agent's own store has later ones, its judge was asked anew.
    is_open = judgments.is_own or last is None
    found = {
        key: [reply for reply in some if first <= reply.created and (is_open or reply.created <= str(last))]
        for key, some in replies.items()
    }
    return {key: some for key, some in found.items() if some}


def _moment(result: Mapping[str, Any], name: str) -> str | None:
    run = result.get("run")
    moment = run.get(name) if isinstance(run, dict) else None
    return moment if isinstance(moment, str) else None
