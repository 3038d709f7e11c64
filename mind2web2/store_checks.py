"""Whether a result says what the stored judgments say: votes, models served, tokens, dollars, times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mind2web2.errors import JudgmentStoreError, UsageError
from mind2web2.judgment_reading import ExportLookup, JudgmentLookup, StoredReply, StoreLookup
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


@dataclass(frozen=True, slots=True)
class Judgments:
    """Where votes are looked up; ``is_own`` if that is the store that the agent's judgments are kept in."""

    lookup: JudgmentLookup
    is_own: bool


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
    if not file.is_file():
        raise UsageError(f"no judgments at {file}: name a {FILE_NAME} or an exported .jsonl file")
    use = CHECKING_OWN if path is None else CHECKING_NAMED
    lookup: JudgmentLookup = ExportLookup(file) if file.suffix == ".jsonl" else StoreLookup(file, use)
    try:
        lookup.replies([""])
    except JudgmentStoreError as error:
        raise UsageError(str(error)) from error
    return Judgments(lookup, is_own=file.resolve() == own.resolve())


def store_findings(
    result: Mapping[str, Any], made_from: Provenance, judgments: Judgments | None
) -> StoreFindings:
    """Return how a result differs from the judgments that it names.

    Args:
        judgments: where they are looked up; ``None`` where nothing is stored.
    """
    try:
        votes = list(votes_in(written_tree(only_tree(result))))
    except TreeShapeError:
        return StoreFindings()
    found = []
    if any(cast.vote.judgment is None for cast in votes) and not made_from.versions:
        found.append(Finding("missing", "its votes name no judgments, so that they cannot be checked"))
    # By what they decided, so that a reader finds them.
    named = [(cast.leaf, cast.vote.judgment) for cast in votes if cast.vote.judgment is not None]
    named += _extractions(result)
    keys = {key for _, key in named}
    if judgments is None:
        found += [Finding("missing", NO_STORE)] if keys else []
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
