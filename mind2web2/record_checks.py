"""Whether the record of an agent's evaluations is right, and still holds: every result with all it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from mind2web2 import __version__
from mind2web2.cures import NO_TREE, NOT_SCORED, SKIPS_UNCLEAR, Cure, cure_of
from mind2web2.injection.flags import flags_of
from mind2web2.metrics import is_score
from mind2web2.provenance import Provenance, text_sha256
from mind2web2.result_checks import Finding, result_faults, unexplained_skips
from mind2web2.results import LoadedResult, answer_dir, latest_result, newest_result_name
from mind2web2.seals import is_seal_broken, is_seal_gone
from mind2web2.selection import AnswerFile
from mind2web2.staleness import (
    CHANGED,
    NO_PROVENANCE,
    Present,
    PresentReader,
    provenance_of,
    stale_reasons,
)
from mind2web2.store_checks import Judgments, replayed_judgments, store_findings
from mind2web2.summaries import task_answers
from mind2web2.utils.foreign_files import read_regular_file
from mind2web2.utils.names import name_list, natural_key
from mind2web2.written_tree import only_tree, score_by_tree


@dataclass(frozen=True, slots=True)
class AnswerCheck:
    """What the checks of one answer's result found.

    Args:
        path: of the result file that counts, ``None`` where there is none.
        score: as the result has it; ``None`` where it has none.
        tree_score: as it follows from the leaves of its tree; ``None`` where it has none.
        folder: of the answer's evaluations, there or not.
        cure: the least that puts right what was found.
    """

    task_id: str
    answer_name: str
    path: Path | None
    score: float | None
    tree_score: float | None
    findings: tuple[Finding, ...]
    folder: Path
    cure: Cure | None

    def has(self, kind: str) -> bool:
        """Tell whether there is a finding of this kind."""
        return any(finding.kind == kind for finding in self.findings)


class _Found(NamedTuple):
    """All that was found of an answer; ``is_contradicted`` if a vote is not what is stored of it."""

    findings: tuple[Finding, ...]
    is_contradicted: bool = False


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
        self._replayed = cache(replayed_judgments)

    def _judgments_of(self, made_from: Provenance) -> tuple[Judgments | None, Sequence[Finding]]:
        """Return where a result's votes are looked up, and what is wrong with their file."""
        is_named = self._judgments is not None and self._judgments.is_named
        if made_from.replayed_from is None or is_named:
            return self._judgments, ()
        return self._replayed(made_from.replayed_from)

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
        content = {} if found is None else found.content
        present = self._present.present(task_id, answer_name, content)
        all_found = self._found(task_id, answer_name, found, present, unscored_reason)
        score = content.get("final_score")
        return AnswerCheck(
            task_id,
            answer_name,
            None if found is None else found.path,
            float(score) if is_score(score) else None,
            score_by_tree(content),
            all_found.findings,
            folder,
            cure_of(
                found,
                present,
                all_found.findings,
                is_contradicted=all_found.is_contradicted,
                is_own_store=self._judgments is None or self._judgments.is_own,
            ),
        )

    def _found(
        self,
        task_id: str,
        answer_name: str,
        found: LoadedResult | None,
        present: Present,
        unscored_reason: str | None,
    ) -> _Found:
        folder = answer_dir(self._root, self._agent_name, task_id, answer_name)
        if found is None:
            newest = newest_result_name(folder / "results")
            if newest is None:
                return _Found((Finding("missing", unscored_reason or "no result"),))
            return _Found((Finding("wrong", f"its newest result {newest} is damaged"),))
        made_from = provenance_of(found.content)
        findings = list(_own_findings(task_id, answer_name, found, made_from))
        is_contradicted = False
        if made_from is not None:
            findings += _present_findings(folder / answer_name, found, made_from, present)
            of_store = store_findings(found.content, made_from, *self._judgments_of(made_from))
            findings += of_store.findings
            is_contradicted = of_store.is_contradicted
        # A changed result has no score for that alone, which is told already.
        is_changed = is_seal_broken(found.content) or is_seal_gone(found.content)
        if unscored_reason is not None and not is_changed:
            findings.append(Finding("missing", f"{NOT_SCORED}: {unscored_reason}"))
        return _Found(tuple(dict.fromkeys(findings)), is_contradicted)


def _own_findings(
    task_id: str, answer_name: str, found: LoadedResult, made_from: Provenance | None
) -> Iterator[Finding]:
    result = found.content
    for fault in (*_name_faults(result, task_id, answer_name), *result_faults(result, made_from)):
        yield Finding("wrong", fault)
    if only_tree(result) is None:
        yield Finding("missing", NO_TREE)
    if skipped := unexplained_skips(result):
        yield Finding("missing", f"{SKIPS_UNCLEAR}: {name_list(skipped)}")
    if made_from is None and result.get("provenance") is not None:
        yield Finding("wrong", "its provenance cannot be read")
    elif made_from is None:
        yield Finding("missing", f"{NO_PROVENANCE}, as results of earlier tools")


def _present_findings(
    copy: Path, found: LoadedResult, made_from: Provenance, present: Present
) -> Iterator[Finding]:
    yield from _copy_findings(copy, found.content, made_from, present.answer_sha256)
    for reason in stale_reasons(found.content, present):
        if reason != CHANGED:  # which is told already
            yield Finding("stale", reason)


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
