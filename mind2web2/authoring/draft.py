"""Drafts of tasks: a model writes rubric and answers, and repairs what lint and rehearsal find."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import BaseModel, Field, ValidationError

from mind2web2.authoring.cases import PERFECT, TOLERANCE, CaseHeader, case_text
from mind2web2.authoring.lint import lint_file
from mind2web2.authoring.rehearsal import (
    CaseResult,
    RehearsalPlan,
    TaskRehearsal,
    rehearse_task,
)
from mind2web2.authoring.rubric_text import rubric_yaml
from mind2web2.authoring.structure import JudgePrice
from mind2web2.errors import JudgeDeclinedError, JudgeOutputError, WorkerError
from mind2web2.judge.protocol import Judge, QuestionContext
from mind2web2.llm_client.chat import ChatRequest, Message
from mind2web2.prompts import BlockChain, instructions
from mind2web2.scripts.rubric_file import RUBRIC_SUFFIX, RubricFile
from mind2web2.scripts.rubric_reading import parsed_rubric
from mind2web2.scripts.yaml_lines import YamlFileError, parsed_yaml
from mind2web2.utils.workers import run_in_worker

MOST_REPAIRS = 3
WRONG_ANSWERS = 3
_TIMEOUT_S = 120.0


class DraftedAnswer(BaseModel):
    """An answer as the model writes it."""

    name: str
    about: str = Field(
        description="what is wrong with it; of the solution: what it rests on"
    )
    answer: str = Field(description="markdown with links")
    extracted: str = Field(
        description="YAML: what a judge reads from it, by the names of extract"
    )
    expected_score: float


class DraftedTask(BaseModel):
    """The model's reply."""

    rubric: str = Field(description="the rubric file, YAML")
    solution: DraftedAnswer
    wrong_answers: list[DraftedAnswer]
    doubts: list[str]

    def answers(self) -> Iterator[tuple[str, DraftedAnswer]]:
        """Yield the answers by the names of their cases, the solution first."""
        yield PERFECT, self.solution
        for number, wrong in enumerate(self.wrong_answers, start=1):
            words = re.sub(r"[^a-z0-9]+", "_", wrong.name.lower()).strip("_")
            yield f"wrong_{number}_{words}"[:60].rstrip("_"), wrong


@dataclass(frozen=True)
class Attempt:
    """One reply with what lint and rehearsal found in it.

    Args:
        rubric: ``None`` where the reply has no proper rubric file.
        cases: the texts of the cases' files by their names.
    """

    reply: DraftedTask
    findings: tuple[str, ...]
    rubric: RubricFile | None = None
    cases: Mapping[str, str] = field(default_factory=dict)
    outcomes: tuple[CaseResult, ...] = ()
    unshown: tuple[str, ...] = ()


@dataclass(frozen=True)
class Draft:
    """All attempts, in order; each after the first is a repair."""

    task_id: str
    attempts: tuple[Attempt, ...]

    @property
    def chosen(self) -> Attempt | None:
        """Return the attempt with the fewest findings, the latest of equals; ``None`` without a rubric."""
        usable = [
            attempt for attempt in reversed(self.attempts) if attempt.rubric is not None
        ]
        return min(usable, key=lambda attempt: len(attempt.findings), default=None)

    def raised(self) -> list[str]:
        """Return the wrong answers whose expected score a repair has raised, each as a sentence."""
        if self.chosen is None:
            return []
        sentences = []
        first = self.attempts[0].reply.wrong_answers
        for before, (name, now) in zip(
            first, list(self.chosen.reply.answers())[1:], strict=False
        ):
            if now.expected_score > before.expected_score + TOLERANCE:
                change = f"from {before.expected_score:.2f} to {now.expected_score:.2f}"
                sentences.append(
                    f"a repair raised the expected score of {name} {change}"
                )
        return sentences


def request_after(question: str, attempts: Sequence[Attempt]) -> ChatRequest | None:
    """Return the request for a draft, or for the next repair; ``None`` where the draft is complete.

    The judge fills in the model.
    """
    if not attempts:
        return _request([str(BlockChain().block("question", question))])
    if not attempts[-1].findings or len(attempts) > MOST_REPAIRS:
        return None
    return _repair_request(question, attempts[-1])


async def draft_task(
    judge: Judge, task_id: str, question: str, price: JudgePrice
) -> Draft:
    """Ask for a draft, check it, and have it repaired at most three times.

    Args:
        price: which the rehearsals name.

    Raises:
        JudgeError: the model failed, declined or gave no proper reply.
    """
    made = made_attempts(judge, task_id, question, price)
    return Draft(task_id, tuple([attempt async for attempt in made]))


async def made_attempts(
    judge: Judge, task_id: str, question: str, price: JudgePrice
) -> AsyncIterator[Attempt]:
    """Yield each attempt of a draft once it is checked; parameters and errors are those of ``draft_task``."""
    attempts: list[Attempt] = []
    while (request := request_after(question, attempts)) is not None:
        reply = await _asked(judge, request, len(attempts) + 1)
        attempt = await _checked(reply, task_id, question, price)
        attempts.append(attempt)
        yield attempt


def _request(parts: Sequence[str]) -> ChatRequest:
    messages: list[Message] = [
        {"role": "system", "content": instructions("draft")},
        {"role": "user", "content": "\n".join(parts)},
    ]
    return ChatRequest("", messages, DraftedTask)


def _repair_request(question: str, attempt: Attempt) -> ChatRequest:
    chain = BlockChain()
    reply = attempt.reply
    rubric = reply.rubric if attempt.rubric is None else rubric_yaml(attempt.rubric)
    answers = reply.model_dump_json(
        include={"solution", "wrong_answers", "doubts"}, indent=1
    )
    blocks = [
        chain.block("question", question),
        chain.block("rubric", rubric),
        chain.block("answers", answers),
        chain.block(
            "findings", "\n".join(f"- {finding}" for finding in attempt.findings)
        ),
    ]
    return _request([*map(str, blocks), instructions("draft_repair")])


async def _asked(judge: Judge, request: ChatRequest, number: int) -> DraftedTask:
    # The number keeps equal requests apart, so that an unchanged draft is not read from the store again.
    reply = await judge.ask(
        request, QuestionContext("script", node="draft", trial=number), None
    )
    if reply.declined is not None:
        raise JudgeDeclinedError(
            f"the model declined to write a draft (--overwrite asks again): {reply.declined}"
        )
    if not isinstance(reply.value, DraftedTask):
        raise JudgeOutputError("the model's reply is no draft")
    return reply.value


async def _checked(
    reply: DraftedTask, task_id: str, question: str, price: JudgePrice
) -> Attempt:
    try:
        read = parsed_rubric(
            reply.rubric.encode(), Path(f"{task_id}{RUBRIC_SUFFIX}")
        ).rubric
    except YamlFileError as error:
        return Attempt(reply, tuple(f"rubric, {problem}" for problem in error.problems))
    own = {"task": task_id, "question": question, "drafted": "unreviewed"}
    rubric = read.model_copy(update=own)
    cases, faults = _cases(reply)
    with TemporaryDirectory(prefix="mind2web2-draft-") as folder:
        script = Path(folder) / f"{task_id}{RUBRIC_SUFFIX}"
        script.write_text(rubric_yaml(rubric), encoding="utf-8")
        # Without a solution, no wrong answer has claims to be compared with.
        for name, text in cases.items() if PERFECT in cases else ():
            (Path(folder) / f"{name}.md").write_text(text, encoding="utf-8")
        linted = lint_file(script)
        report = await _rehearsed(
            RehearsalPlan(task_id, script, question, Path(folder), price)
        )
        found = [
            f"{finding.kind}: {finding.message}".replace(f"{folder}/", "")
            for finding in report.findings
        ]
    faults += [
        f"rubric, line {each.line}: {each.number} {each.rule.name}: {each.detail} (to do: {each.rule.cure})"
        for each in linted
    ]
    findings = tuple(dict.fromkeys([*faults, *found]))
    return Attempt(
        reply, findings, rubric, cases, report.cases, report.structure.unshown
    )


async def _rehearsed(plan: RehearsalPlan) -> TaskRehearsal:
    try:
        return await run_in_worker(rehearse_task, plan, timeout_s=_TIMEOUT_S)
    except WorkerError as error:
        return TaskRehearsal(plan.task_id, error=str(error))


def _cases(reply: DraftedTask) -> tuple[dict[str, str], list[str]]:
    """Return the texts of the cases' files by name, and what keeps answers from being cases."""
    texts: dict[str, str] = {}
    faults = []
    if len(reply.wrong_answers) != WRONG_ANSWERS:
        faults.append(
            f"wrong_answers: {len(reply.wrong_answers)} are given, {WRONG_ANSWERS} are needed"
        )
    for name, answer in reply.answers():
        if name != PERFECT and answer.expected_score >= 1:
            faults.append(f"{name}: a wrong answer deserves less than 1")
        try:
            header = _header(name, answer)
        except (YamlFileError, ValidationError) as error:
            faults.append(f"answer {name}: {' '.join(str(error).split())}")
            continue
        note = "drafted by a model, not reviewed: " + " ".join(answer.about.split())
        texts[name] = case_text(header, answer.answer, note)
    return texts, faults


def _header(name: str, answer: DraftedAnswer) -> CaseHeader:
    extract, _ = parsed_yaml(answer.extracted.encode(), Path(f"{name}, extracted"))
    expect = 1.0 if name == PERFECT else answer.expected_score
    return CaseHeader.model_validate({"expect": expect, "extract": extract or {}})
