"""``mind2web2 draft``: a model drafts a task, which a person then reviews."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mind2web2.cli.options import Subcommands, add_settings, asking_providers
from mind2web2.cli.settings_file import settings_of
from mind2web2.errors import JudgeError, JudgmentMissingError, UsageError
from mind2web2.runs.setting import Flag
from mind2web2.runs.settings import JUDGE_SETTINGS, SETTINGS, RunSettings
from mind2web2.utils.names import check_name
from mind2web2.utils.text import counted

if TYPE_CHECKING:
    from rich.console import Console

    from mind2web2.authoring.draft import Attempt, Draft
    from mind2web2.llm_client.chat import Usage

DESCRIPTION = """\
Have a model draft a task: a rubric file, a solution and three wrong answers. They are linted and rehearsed,
and repaired by the model at most three times (docs/draft.md). The file says `drafted: unreviewed` until you
have read it and change that.

  mind2web2 draft "Which museum in ...?" -o eval_scripts/own/museum.yaml --estimate
  mind2web2 draft @question.txt -o eval_scripts/own/museum.yaml --max_cost 1

Replies are stored: the same command after an interruption continues, and asks nothing twice. Exit status:
0 a draft without findings, 1 findings are left, 2 there is no draft.
"""
_KEPT = "nothing is written; replies so far are kept, and the same command continues from here"
_OUTPUT_TOKENS = 5000
_REPORT = "draft_report.txt"
_NOTE = """\
# Drafted by {model}, not reviewed: read {report},
# correct this file and its cases, and then write `drafted: reviewed`.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``draft`` to ``mind2web2``."""
    parser = commands.add_parser(
        "draft", help="have a model draft a task", description=DESCRIPTION
    )
    add = parser.add_argument
    add(
        "question",
        metavar="QUESTION",
        help="the question to agents, or @FILE for a file that has it",
    )
    add(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        required=True,
        help="the rubric file to write; its name without .yaml is the task's id",
    )
    add(
        "--cases",
        metavar="DIR",
        type=Path,
        default=Path("rehearsals"),
        help="where answers and report go, a folder a task (default: %(default)s/)",
    )
    estimate = {
        "--estimate": Flag(True, "print requests, tokens and dollars, and ask nothing")
    }
    overwrite = {"--overwrite": Flag(True, "ask again instead of using stored replies")}
    changed = (
        asking_providers(),
        replace(SETTINGS["judge_model"], help="the model that writes the draft"),
        replace(SETTINGS["estimate"], flags=estimate, group=""),
        replace(SETTINGS["overwrite"], flags=overwrite),
        replace(
            SETTINGS["max_cost"],
            help="stop asking at this cost; the same command continues with as much again",
            group="",
        ),
    )
    add_settings(
        parser, ["estimate", "max_cost", "overwrite", *JUDGE_SETTINGS], changed=changed
    )
    parser.set_defaults(run=run)


@dataclass(frozen=True)
class _Order:
    """What is to be drafted, and where it goes."""

    question: str
    script: Path
    cases: Path

    @property
    def task_id(self) -> str:
        return self.script.stem

    @property
    def folder(self) -> Path:
        return self.cases / self.task_id

    @property
    def replies(self) -> Path:
        """Return the file that keeps the model's replies."""
        from mind2web2.judge.store import FILE_NAME

        return self.cases / ".drafts" / FILE_NAME


def run(options: argparse.Namespace) -> int:
    """Draft the task, print the report and return the exit status."""
    from mind2web2.cli.console import line, plain_console
    from mind2web2.cli.event_loop import run_to_exit

    # No pages are captured, and no answer is judged.
    settings = replace(
        settings_of(options, is_announced=True), no_capture=True, no_barred=True
    )
    order = _order(_question(options.question), options.output, options.cases)
    console = plain_console(outlives_reader=True)
    if settings.estimate:
        return run_to_exit(
            _estimated(settings, order, console),
            lambda: line(console, "Stopped: nothing was asked."),
        )
    return run_to_exit(
        _drafted(settings, order, console), lambda: line(console, f"Stopped: {_KEPT}.")
    )


def _order(question: str, output: Path, cases: Path) -> _Order:
    """Return the order, checked: nothing is there that it would overwrite."""
    from mind2web2.prompts import encodable
    from mind2web2.scripts.rubric_file import RUBRIC_SUFFIX

    if output.suffix != RUBRIC_SUFFIX:
        raise UsageError(f"-o {output}: a rubric file ends in {RUBRIC_SUFFIX}")
    check_name("task", output.stem)
    order = _Order(encodable(question), output, cases)
    taken = [
        order.script,
        order.script.with_suffix(".py"),
        *sorted(order.folder.glob("*")),
    ]
    if found := next((path for path in taken if path.exists()), None):
        raise UsageError(
            f"{found} is there already: move it away, or name another file"
        )
    return order


def _question(given: str) -> str:
    from mind2web2.utils.files import read_regular_file

    text = given
    if given.startswith("@"):
        try:
            text = read_regular_file(Path(given[1:])).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UsageError(f"{given[1:]} is not UTF-8: save it as UTF-8") from error
    if not text.strip():
        raise UsageError("the question is empty")
    return text.strip()


async def _estimated(settings: RunSettings, order: _Order, console: Console) -> int:
    from mind2web2.authoring.draft import MOST_REPAIRS, request_after
    from mind2web2.cli.console import line
    from mind2web2.judge.tokens import request_tokens
    from mind2web2.llm_client.chat import Usage

    stored = await _stored_attempts(settings, order)
    request = request_after(order.question, stored)
    kept, further = "", ""
    if stored:
        kept = f"{counted(len(stored), 'reply')} stored, "
        further = "further "
    if request is None:
        line(console, f"{settings.model}: {kept}no request is left. Nothing was asked.")
        return 0
    tokens = request_tokens(request)
    left = MOST_REPAIRS - len(stored)
    following = Usage(tokens, output_tokens=_OUTPUT_TOKENS)
    # A repair shows the draft, and what was found; one that follows a repair is as long.
    repair_tokens = tokens if stored else tokens + _OUTPUT_TOKENS + 500
    repair = Usage(repair_tokens, output_tokens=_OUTPUT_TOKENS)
    least = _cost(settings, [following])
    most = _cost(settings, [following, *[repair] * left])
    line(
        console,
        f"{settings.model}: {kept}1 request of {tokens:,} tokens, and at most {counted(left, 'repair')}; "
        f"replies are taken to have {_OUTPUT_TOKENS:,} tokens. Without {further}repairs {least}, with all "
        f"{most}. Nothing was asked.",
    )
    return 0


async def _stored_attempts(settings: RunSettings, order: _Order) -> list[Attempt]:
    """Return the attempts whose replies are stored, up to the first that would be asked for."""
    from mind2web2.authoring.draft import made_attempts
    from mind2web2.authoring.structure import JudgePrice
    from mind2web2.judge.answer_judge import AnswerJudge
    from mind2web2.judge.transfer import open_for_replay
    from mind2web2.llm_client.settings import endpoint_of
    from mind2web2.runs.session import judge_settings, replaying_judge

    stored: list[Attempt] = []
    if settings.overwrite or not order.replies.exists():
        return stored
    endpoint = endpoint_of(settings.llm_provider, settings.judge_server())
    named = replace(judge_settings(settings), replayed_endpoint=endpoint)
    price = JudgePrice(settings.model, settings.prices.get(settings.model))
    with open_for_replay(order.replies) as store:
        client = AnswerJudge(replaying_judge(named, store), "draft", order.task_id)
        made = made_attempts(client, order.task_id, order.question, price)
        try:
            async for attempt in made:
                stored.append(attempt)
        except JudgmentMissingError:
            return stored
        except JudgeError as error:
            raise UsageError(f"no draft: {error}") from error
    return stored


def _cost(settings: RunSettings, usages: list[Usage]) -> str:
    from mind2web2.llm_client.prices import total_price_usd
    from mind2web2.utils.dollars import dollars

    cost_usd = total_price_usd(
        usages, settings.model, own=settings.prices.get(settings.model)
    )
    return "price unknown" if cost_usd is None else f"about {dollars(cost_usd)}"


async def _drafted(settings: RunSettings, order: _Order, console: Console) -> int:
    from mind2web2.authoring.draft import draft_task
    from mind2web2.authoring.structure import JudgePrice
    from mind2web2.cli.console import line, warnings_on
    from mind2web2.cli.displays import totals_text
    from mind2web2.judge.answer_judge import AnswerJudge
    from mind2web2.runs.session import open_run

    price = JudgePrice(settings.model, settings.prices.get(settings.model))
    with warnings_on(console):
        async with open_run(settings, order.replies) as session:
            judge = AnswerJudge(session.judge, "draft", order.task_id)
            try:
                draft = await draft_task(judge, order.task_id, order.question, price)
            except JudgeError as error:
                raise UsageError(f"no draft: {error}; {_KEPT}") from error
            used = totals_text(session.judge.usage)
        for problem in session.problems:
            line(console, f"Warning: {problem}")
    status = _written(draft, order, settings.model, console)
    line(console, used)
    return status


def _written(draft: Draft, order: _Order, model: str, console: Console) -> int:
    """Write the chosen draft with its cases and report, all at once, and print the report."""
    from mind2web2.authoring.draft_report import report_lines
    from mind2web2.authoring.rubric_text import rubric_yaml
    from mind2web2.cli.console import line
    from mind2web2.utils.files import write_together

    report = list(report_lines(draft))
    chosen = draft.chosen
    for text in report:
        line(console, text)
    if chosen is None or chosen.rubric is None:
        for finding in draft.attempts[-1].findings:
            line(console, f"Found at last: {finding}")
        line(
            console,
            "No draft: no reply has a proper rubric file. Nothing is written; --overwrite asks again.",
        )
        return 2
    note = _NOTE.format(model=model, report=order.folder / _REPORT)
    files = {order.folder / f"{name}.md": text for name, text in chosen.cases.items()}
    files[order.folder / _REPORT] = "\n".join(report) + "\n"
    files[order.script] = note + rubric_yaml(chosen.rubric)
    write_together(files)
    for path in files:
        line(console, f"written: {path}")
    line(
        console,
        f"{counted(len(chosen.findings), 'finding')} left. Read the report, correct the files, run mind2web2 "
        f"rehearse {order.task_id}, and write `drafted: reviewed` into {order.script}.",
    )
    return 1 if chosen.findings else 0
