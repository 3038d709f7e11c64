"""Whether the record of an agent's evaluations is right, and still holds: every result with all it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mind2web2 import __version__
from mind2web2.errors import JudgmentStoreError, UsageError
from mind2web2.injection.flags import flags_of
from mind2web2.judgment_reading import ExportLookup, JudgmentLookup, StoredReply, StoreLookup
from mind2web2.judgments import FILE_NAME
from mind2web2.metrics import is_score
from mind2web2.provenance import Provenance, text_sha256
from mind2web2.recorded_judge import REPLAY_ENDPOINT
from mind2web2.result_checks import Finding, result_faults, score_by_tree, vote_fault, votes_in
from mind2web2.results import LoadedResult, answer_dir, latest_result, newest_result_name
from mind2web2.seals import is_seal_broken, is_seal_gone
from mind2web2.selection import AnswerFile
from mind2web2.staleness import CHANGED, NO_PROVENANCE, PresentReader, provenance_of, stale_reasons
from mind2web2.summaries import task_answers
from mind2web2.utils.foreign_files import read_regular_file
from mind2web2.utils.names import name_list, natural_key
from mind2web2.written_tree import TreeShapeError, only_tree, written_tree

NOT_STORED = "the judgments that it names are not stored"


@dataclass(frozen=True, slots=True)
class AnswerCheck:
    """What the checks of one answer's result found.

    Args:
        path: of the result file that counts, ``None`` where there is none.
        score: as the result has it; ``None`` where it has none.
        tree_score: as it follows from the leaves of its tree; ``None`` where it has none.
    """

    task_id: str
    answer_name: str
    path: Path | None
    score: float | None
    tree_score: float | None
    findings: tuple[Finding, ...]

    def has(self, kind: str) -> bool:
        """Tell whether there is a finding of this kind."""
        return any(finding.kind == kind for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Judgments:
    """Where votes are looked up; ``is_own`` if that is the store that the agent's judgments are kept in."""

    lookup: JudgmentLookup
    is_own: bool


class RecordChecks:
    """Checks results against what they name.

    Args:
        eval_results_root: where the results are.
        judgments: where votes are looked up; ``None`` where nothing is stored.
        present: reads what results would be made from now.
    """

    def __init__(
        self,
        eval_results_root: Path,
        agent_name: str,
        judgments: Judgments | None,
        present: PresentReader,
    ) -> None:
        self._root = eval_results_root
        self._agent_name = agent_name
        self._judgments = judgments
        self._present = present

    def task(self, task_id: str, answers: Sequence[AnswerFile]) -> Iterator[AnswerCheck]:
        """Check the results of a task, and yield what was found of each answer.

        Args:
            answers: those there are now; results of others are checked as well.
        """
        known_of = task_answers(self._root, self._agent_name, task_id)
        scored = {answer.answer_name: answer for answer in known_of}
        names = {answer.name for answer in answers} | scored.keys() | self._with_results(task_id)
        for name in sorted(names, key=natural_key):
            known = scored.get(name)
            yield self._answer(task_id, name, None if known is None else known.reason)

    def _with_results(self, task_id: str) -> set[str]:
        folders = (self._root / self._agent_name / task_id).glob("*/results")
        return {f"{folder.parent.name}.md" for folder in folders}

    def _answer(self, task_id: str, answer_name: str, unscored_reason: str | None) -> AnswerCheck:
        folder = answer_dir(self._root, self._agent_name, task_id, answer_name)
        found = latest_result(folder / "results")
        if found is None:
            newest = newest_result_name(folder / "results")
            finding = (
                Finding("missing", unscored_reason or "no result")
                if newest is None
                else Finding("wrong", f"its newest result {newest} is damaged")
            )
            return AnswerCheck(task_id, answer_name, None, None, None, (finding,))
        findings = list(self._findings(task_id, answer_name, folder, found))
        # A changed result has no score for that alone, which is told already.
        is_changed = is_seal_broken(found.content) or is_seal_gone(found.content)
        if unscored_reason is not None and not is_changed:
            findings.append(Finding("missing", f"not scored in the last run: {unscored_reason}"))
        score = found.content.get("final_score")
        return AnswerCheck(
            task_id,
            answer_name,
            found.path,
            float(score) if is_score(score) else None,
            score_by_tree(found.content),
            tuple(dict.fromkeys(findings)),
        )

    def _findings(
        self, task_id: str, answer_name: str, folder: Path, found: LoadedResult
    ) -> Iterator[Finding]:
        result = found.content
        made_from = provenance_of(result)
        for fault in (*_name_faults(result, task_id, answer_name), *result_faults(result, made_from)):
            yield Finding("wrong", fault)
        if only_tree(result) is None:
            yield Finding("missing", "it has no tree that its score could follow from")
        present = self._present.present(task_id, answer_name, result)
        if made_from is None:
            if result.get("provenance") is not None:
                yield Finding("wrong", "its provenance cannot be read")
            else:
                yield Finding("missing", f"{NO_PROVENANCE}, as results of earlier tools")
            return
        yield from _copy_findings(folder / answer_name, result, made_from, present.answer_sha256)
        for reason in stale_reasons(result, present):
            if reason != CHANGED:  # which is told above
                yield Finding("stale", reason)
        yield from self._judgment_findings(result, made_from)

    def _judgment_findings(self, result: Mapping[str, Any], made_from: Provenance) -> Iterator[Finding]:
        try:
            votes = list(votes_in(written_tree(only_tree(result))))
        except TreeShapeError:
            return
        if any(cast.vote.judgment is None for cast in votes) and not made_from.versions:
            yield Finding("missing", "its votes name no judgments, so that they cannot be checked")
        # By what they decided, so that a reader finds them.
        named = [(cast.leaf, cast.vote.judgment) for cast in votes if cast.vote.judgment is not None]
        named += _extractions(result)
        keys = {key for _, key in named}
        if self._judgments is None:
            if keys:
                yield Finding("missing", f"{NOT_STORED}: there is no store")
            return
        stored = _of_judge(self._judgments.lookup.replies(keys), made_from)
        lacking = keys - stored.keys()
        if lacking:
            # Which file a replay has answered from is not known.
            may_be_elsewhere = made_from.judge.endpoint == REPLAY_ENDPOINT or not self._judgments.is_own
            where = name_list({what for what, key in named if key in lacking})
            text = f"{NOT_STORED}, {len(lacking)} of {len(keys)}: {where}"
            yield Finding("missing" if may_be_elsewhere else "wrong", text)
        judged_to = _judged_to(result)
        for cast in votes:
            replies = stored.get(cast.vote.judgment or "", ())
            fault = vote_fault(cast, replies) if replies else None
            if fault is None:
                continue
            if judged_to is not None and all(reply.created > judged_to for reply in replies):
                yield Finding("stale", "judge: asked anew since")
            else:
                yield Finding("wrong", fault)


def _name_faults(result: Mapping[str, Any], task_id: str, answer_name: str) -> Iterator[str]:
    for name, value in (("task_id", task_id), ("answer_name", answer_name)):
        found = result.get(name, value)
        if name == "answer_name" and found == "unknown_answer":
            continue  # the script did not say it (contract.md)
        if str(found).removesuffix(".md") != value.removesuffix(".md"):
            yield f"its {name} is {found!r}: it is the result of something else"


def _copy_findings(
    path: Path, result: Mapping[str, Any], made_from: Provenance, answer_sha256: str | None
) -> Iterator[Finding]:
    """Yield whether the copy of the judged answer beside a result is that answer, and has its flags."""
    try:
        text = read_regular_file(path).decode("utf-8").replace("\r\n", "\n")
    except FileNotFoundError:
        yield Finding("missing", f"there is no copy {path.name} of the answer that was judged")
        return
    except (OSError, UnicodeDecodeError) as error:
        yield Finding("wrong", f"the copy {path.name} of the answer that was judged cannot be read: {error}")
        return
    copied = text_sha256(text)
    # An evaluation that was stopped may have put the present answer there.
    if copied not in (made_from.answer_sha256, answer_sha256):
        yield Finding("wrong", f"the copy {path.name} beside it is not the answer that was judged")
    # Another version may see other signs.
    elif copied == made_from.answer_sha256 and made_from.versions.get("mind2web2") == __version__:
        flags = [flag.model_dump(mode="json") for flag in flags_of(text)]
        if result.get("answer_flags") != flags:
            yield Finding("wrong", f"its answer_flags are not those of the answer, which has {len(flags)}")


def _extractions(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    records = result.get("extractions")
    records = [record for record in records if isinstance(record, dict)] if isinstance(records, list) else []
    return [(str(record.get("name")), str(record["judgment"])) for record in records if "judgment" in record]


def _of_judge(
    replies: Mapping[str, Sequence[StoredReply]], made_from: Provenance
) -> dict[str, list[StoredReply]]:
    """Return the replies of the server that judged; a replay's are any server's."""
    endpoint = made_from.judge.endpoint
    found: dict[str, list[StoredReply]] = {}
    for key, some in replies.items():
        of_server = [reply for reply in some if endpoint in (REPLAY_ENDPOINT, reply.endpoint)]
        if of_server:
            found[key] = of_server
    return found


def _judged_to(result: Mapping[str, Any]) -> str | None:
    run = result.get("run")
    judged_to = run.get("judged_to") if isinstance(run, dict) else None
    return judged_to if isinstance(judged_to, str) else None


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
    lookup: JudgmentLookup = ExportLookup(file) if file.suffix == ".jsonl" else StoreLookup(file)
    try:
        lookup.replies([""])
    except JudgmentStoreError as error:
        raise UsageError(str(error)) from error
    return Judgments(lookup, is_own=path is None)
