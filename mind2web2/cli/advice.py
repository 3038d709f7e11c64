"""What ``verify-results`` advises: the least that puts right what it has found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mind2web2.cures import Cure
from mind2web2.summaries import ALL_RESULTS_NAME
from mind2web2.utils.names import name_list

if TYPE_CHECKING:
    from mind2web2.record_checks import AnswerCheck
    from mind2web2.result_checks import Finding

ALL_TASKS = "all tasks"
_AS_BEFORE = "(with the options of before)"
_EVALUATING = (Cure.EVALUATE, Cure.MOVE_AWAY, Cure.ASK_ANEW, Cure.ANSWER_BACK, Cure.MEND_ANSWER)


def advice(
    agent_name: str,
    answers: Sequence[AnswerCheck],
    summaries: Mapping[str, Sequence[Finding]],
    judged_by: Sequence[str] = (),
) -> list[str]:
    """Return what to do next, line by line; nothing where all is right.

    Args:
        summaries: what was found of summaries, by task and of all tasks.
        judged_by: options that say which judge and script count.
    """
    by_cure = {cure: [answer for answer in answers if answer.cure is cure] for cure in Cure}
    evaluate = " ".join(("mind2web2 evaluate", agent_name, *judged_by))
    lines = _put_back_lines(by_cure, evaluate)
    if away := [answer.path for answer in by_cure[Cure.MOVE_AWAY]]:
        lines.append(f"Next: move these files away, which would be reused, and run: {evaluate} {_AS_BEFORE}")
        lines += [f"  {path}" for path in away]
    elif by_cure[Cure.EVALUATE]:
        lines.append(f"Next, to judge what is wrong, stale or missing: {evaluate} {_AS_BEFORE}")
    if asked_anew := by_cure[Cure.ASK_ANEW]:
        lines.append("Next, as stored judgments cannot settle it; each is asked, and paid for, anew:")
        lines += _overwriting_lines(asked_anew, evaluate)
    if by_cure[Cure.NAME_JUDGMENTS]:
        lines.append(
            "Where judgments are in another file, as those of a replay: --judgments FILE; without that "
            "option they are looked up in the agent's own store"
        )
    if without_store := by_cure[Cure.BRING_BACK]:
        lines.append(
            "Where judgments are in another file: --judgments FILE; where they are lost, each is asked, and "
            "paid for, anew by:"
        )
        lines += _overwriting_lines(without_store, evaluate)
    if not any(by_cure[cure] for cure in _EVALUATING):
        lines += _summing_lines(agent_name, summaries, evaluate)
    return lines


def _overwriting_lines(answers: Sequence[AnswerCheck], evaluate: str) -> list[str]:
    tasks = dict.fromkeys(answer.task_id for answer in answers)
    return [f"  {evaluate} --task_id {task_id} --overwrite {_AS_BEFORE}" for task_id in tasks]


def _summing_lines(agent_name: str, summaries: Mapping[str, Sequence[Finding]], evaluate: str) -> list[str]:
    wrong = [(name, finding) for name, findings in summaries.items() for finding in findings]
    if not wrong:
        return []
    # That command writes the agent's own summary and no other one.
    is_own = all(
        name == ALL_TASKS and not finding.text.startswith(ALL_RESULTS_NAME) for name, finding in wrong
    )
    command = f"mind2web2 metrics {agent_name}" if is_own else f"{evaluate} {_AS_BEFORE}"
    return [f"Next, to sum up anew: {command}"]


def _names(answers: Sequence[AnswerCheck]) -> str:
    return name_list({f"{answer.task_id}/{answer.answer_name}" for answer in answers})


def _put_back_lines(by_cure: Mapping[Cure, Sequence[AnswerCheck]], evaluate: str) -> list[str]:
    lines = []
    if without_script := by_cure[Cure.SCRIPT_BACK]:
        tasks = name_list({answer.task_id for answer in without_script})
        lines.append(f"Next: put the eval scripts of these tasks in place, which are gone: {tasks}")
    if unreadable := by_cure[Cure.MEND_ANSWER]:
        lines.append(
            "Next: mend these answers, which are there and cannot be judged as they are, and run: "
            f"{evaluate} {_AS_BEFORE}: {_names(unreadable)}"
        )
    if own_score := by_cure[Cure.MEND_SCRIPT]:
        tasks = name_list({answer.task_id for answer in own_score})
        lines.append(
            "Next: see why the eval scripts of these tasks return another score than their trees come to, "
            f"and mend them; evaluating again changes nothing before: {tasks}"
        )
    if gone := by_cure[Cure.ANSWER_BACK]:
        lines.append(
            f"Next: put these answers back, or move away what is left of them and run: {evaluate} "
            f"{_AS_BEFORE}: {_names(gone)}"
        )
        lines += [f"  {answer.folder}" for answer in gone if answer.folder.is_dir()]
    return lines
