"""The least that puts right what a check of the record has found of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from mind2web2.errors import EvalScriptError
from mind2web2.provenance import Provenance
from mind2web2.recorded_judge import REPLAY_ENDPOINT
from mind2web2.result_checks import OTHER_SCORE, Finding
from mind2web2.results import LoadedResult
from mind2web2.script_run import checked_result
from mind2web2.seals import has_seal, is_seal_broken
from mind2web2.staleness import Present, change_reasons, provenance_of, served_reason
from mind2web2.store_checks import NOT_STORED

NO_TREE = "it has no tree that its score could follow from"
SKIPS_UNCLEAR = "its version did not keep what would show whether these leaves were rightly skipped"
NOT_SCORED = "not scored in the last run"


class Cure(StrEnum):
    """What a user has to do.

    Attributes:
        EVALUATE: run the evaluation again, which judges the answer anew by itself.
        MOVE_AWAY: the same, but first move the result away: it would be reused.
        ASK_ANEW: evaluate with ``--overwrite``: what is stored is not to be relied upon either.
        ANSWER_BACK: put the answer back, or move away what is left of its evaluations.
        MEND_ANSWER: make an answer readable that is there, and evaluate.
        SCRIPT_BACK: put the script back, without which nothing can be judged.
        MEND_SCRIPT: see why the script returns another score than its tree comes to: it would again.
        NAME_JUDGMENTS: say which file the judgments are in.
        BRING_BACK: the same, or put the store back; where it is lost, evaluate with ``--overwrite``.
    """

    EVALUATE = "evaluate"
    MOVE_AWAY = "move away and evaluate"
    ASK_ANEW = "evaluate with overwrite"
    ANSWER_BACK = "put the answer back"
    MEND_ANSWER = "mend the answer"
    SCRIPT_BACK = "put the script back"
    MEND_SCRIPT = "mend the script"
    NAME_JUDGMENTS = "name judgments"
    BRING_BACK = "bring judgments back"


def cure_of(
    found: LoadedResult | None,
    present: Present,
    findings: Sequence[Finding],
    *,
    is_contradicted: bool,
    is_own_store: bool,
) -> Cure | None:
    """Return what puts right what was found of an answer; ``None`` where nothing does, or is to be.

    Args:
        found: the result that counts; ``None`` where none does.
        is_contradicted: whether votes are not what is stored of their judgments.
        is_own_store: whether they were looked up in the agent's own store, rather than in a named file.
    """
    if not findings:
        return None
    if (put_right_first := _cure_of_sources(present)) is not None:
        return put_right_first
    made_from = None if found is None else provenance_of(found.content)
    if found is None or made_from is None or not _is_as_written(found):
        return Cure.EVALUATE
    is_replay = made_from.judge.endpoint == REPLAY_ENDPOINT
    if not is_replay and (
        # Nobody knows which of two records is right, or what another model would have said.
        (is_contradicted and is_own_store) or served_reason(made_from, present) is not None
    ):
        return Cure.ASK_ANEW
    # What its script returned it would return again.
    other = [finding for finding in findings if not finding.text.startswith(OTHER_SCORE)]
    if other and not _is_reused(found, made_from, present):
        return Cure.EVALUATE
    return _cure_of_reused(
        other,
        is_contradicted=is_contradicted and not is_replay,
        # Which file a replay has answered from is not known.
        is_of_own_store=is_own_store and not is_replay,
    )


def _cure_of_sources(present: Present) -> Cure | None:
    """Return what puts right an answer or a script without which nothing can be judged."""
    if present.answer_sha256 is None:
        return Cure.MEND_ANSWER if present.is_answer_there else Cure.ANSWER_BACK
    return Cure.SCRIPT_BACK if present.script_sha256 is None else None


def _cure_of_reused(
    findings: Sequence[Finding], *, is_contradicted: bool, is_of_own_store: bool
) -> Cure | None:
    if not findings:
        return Cure.MEND_SCRIPT
    if is_contradicted:
        # A named file may be of another evaluation: what it says is no reason to pay for one.
        return Cure.NAME_JUDGMENTS
    if all(finding.text.startswith(NOT_SCORED) for finding in findings):
        return Cure.EVALUATE
    # What an evaluation anew would show is not worth asking everything again.
    lacking = [finding for finding in findings if not finding.text.startswith(SKIPS_UNCLEAR)]
    if lacking and all(each.kind == "missing" and each.text.startswith(NOT_STORED) for each in lacking):
        return Cure.BRING_BACK if is_of_own_store else Cure.NAME_JUDGMENTS
    # A script that builds no tree builds none the next time either.
    return None if all(finding.text == NO_TREE for finding in findings) else Cure.MOVE_AWAY


def _is_as_written(found: LoadedResult) -> bool:
    return has_seal(found.content) and not is_seal_broken(found.content)


def _is_reused(found: LoadedResult, made_from: Provenance, present: Present) -> bool:
    """Tell whether an evaluation takes a result for right as it is (``answer_evaluation.held_result``)."""
    try:
        checked_result(found.content, found.path)
    except EvalScriptError:
        return False
    if made_from.other_pages or found.content.get("doubts"):
        return False
    return not any(change_reasons(made_from, present))
