"""``mind2web2 show``: an agent's results as text.

The text goes down to the claims, reasons and pages of one answer.
"""

from __future__ import annotations

import argparse
import json
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rich.text import Text

from mind2web2.cli.console import PlainConsole
from mind2web2.cli.options import settings_of
from mind2web2.cli.results.scores import score_cells
from mind2web2.cli.results.stored_values import stored_values
from mind2web2.errors import UsageError
from mind2web2.pages.cache import CacheFileSys
from mind2web2.results.known_answers import (
    agent_answers,
    require_results,
    task_answers,
)
from mind2web2.results.result_file import ResultFile
from mind2web2.results.scored_answer import ScoredAnswer, result_facts, scored_answers
from mind2web2.results.stored_results import (
    LoadedResult,
    answer_dir,
    answer_results_dir,
    latest_result,
)
from mind2web2.rubric.arithmetic import explanations
from mind2web2.rubric.verdicts import (
    Evidence,
    PageCheck,
    PageShown,
    Quote,
    Status,
    Vote,
)
from mind2web2.rubric.written_tree import WrittenNode
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.files import folder_names
from mind2web2.utils.invisible_text import make_visible
from mind2web2.utils.names import check_name, did_you_mean, name_list
from mind2web2.utils.program import command_line
from mind2web2.utils.text import counted, number, whole

_INDENT = "  "
# Deeper nodes are not indented further, so that their text keeps a readable width.
_MAX_INDENTED_LEVELS = 10
# The statuses of leaves, as they are shown.
_STATUSES: Mapping[Status, str] = {
    "passed": "passed",
    "failed": "failed",
    "skipped": "skipped",
    "initialized": "never judged",
}
_STYLES = {"passed": "green", "failed": "red", "partial": "yellow", "skipped": "yellow"}


def run(options: argparse.Namespace) -> int:
    """Print an agent, a task or an answer, and return the exit status."""
    agent_name = check_name("agent", options.agent.rstrip("/"))
    if options.failed and options.answer is None:
        command = command_line("show", "AGENT", "TASK", "ANSWER", "--failed")
        raise UsageError(f"--failed needs an answer: {command}")
    settings = settings_of(options)
    root = settings.paths.eval_results_root
    require_results(root, agent_name)
    console = PlainConsole()
    with console.show_warnings():
        if options.task is None:
            answers = agent_answers(root, agent_name)
            _print_agent(console, settings, agent_name, answers)
            return 0
        answers = _of_task(root, agent_name, options.task.rstrip("/"))
        if options.answer is None:
            _print_task(console, settings, agent_name, answers)
        else:
            page = _AnswerPage(
                console, settings, agent_name, _answer_named(answers, options.answer)
            )
            page.print(has_passed=not options.failed)
    return 0


def _of_task(root: Path, agent_name: str, task_id: str) -> list[ScoredAnswer]:
    known = folder_names(root / agent_name)
    answers = task_answers(root, agent_name, task_id) if task_id in known else []
    if not answers:
        cure = did_you_mean(task_id, known, f"found: {name_list(known)}")
        raise UsageError(f"no results of agent {agent_name} for task {task_id}; {cure}")
    return answers


def _answer_named(answers: Sequence[ScoredAnswer], name: str) -> ScoredAnswer:
    stem = name.removesuffix(".md")
    for answer in answers:
        if answer.answer_name in (f"{stem}.md", f"answer_{stem}.md"):
            return answer
    known = name_list(_stem(answer) for answer in answers)
    raise UsageError(f"no result of answer {stem} to task {answers[0].task_id}. Found: {known}")


def _print_agent(
    console: PlainConsole,
    settings: RunSettings,
    agent_name: str,
    answers: Sequence[ScoredAnswer],
) -> None:
    tasks: dict[str, list[ScoredAnswer]] = {}
    for answer in answers:
        tasks.setdefault(answer.task_id, []).append(answer)
    rows = []
    for task_id, of_task in tasks.items():
        by_answer = {answer.answer_name: answer.score for answer in of_task}
        rows.append((task_id, *score_cells(by_answer)))
    title = f"{agent_name}: {counted(len(tasks), 'task')}, {counted(len(answers), 'answer')}"
    console.print_table(title, ("task", "answers", "mean"), rows, texts=("answers",))
    if judges := sorted({answer.facts.judge for answer in answers if answer.facts.judge}):
        console.print_line(f"Judged by {'; '.join(judges)}.")
    if tasks:
        option = settings.options()
        command = command_line("show", agent_name, next(iter(tasks)), *option)
        console.print_line(f"To see the answers to a task: {command}")


def _print_task(
    console: PlainConsole,
    settings: RunSettings,
    agent_name: str,
    answers: Sequence[ScoredAnswer],
) -> None:
    task_id = answers[0].task_id
    root = settings.paths.eval_results_root
    rows = []
    for answer in answers:
        results = answer_results_dir(root, agent_name, task_id, answer.answer_name)
        result = latest_result(results) if answer.reason is None else None
        counts = _leaf_counts(() if result is None else result.content.trees)
        leaves = ["-" if result is None else str(count) for count in counts.values()]
        row = (_stem(answer), number(answer.score), *leaves, whole(answer.word_count))
        rows.append(row)
    headings = ("answer", "score", *_STATUSES.values(), "words")
    console.print_table(f"{agent_name}: {task_id}", headings, rows)
    console.print_line(
        f"The columns {', '.join(_STATUSES.values())} count leaves of the rubric tree."
    )
    for answer in answers:
        if answer.reason is not None:
            outcome = "No result" if answer.score is None else f"Score {number(answer.score)}"
            console.print_line(f"{outcome}: {answer.answer_name}: {answer.reason}")
    if scored := scored_answers(answers):
        option = settings.options()
        command = command_line("show", agent_name, task_id, _stem(scored[0]), *option)
        console.print_line(f"To see why an answer has its score: {command}")


def _stem(answer: ScoredAnswer) -> str:
    return answer.answer_name.removesuffix(".md")


def _leaf_counts(trees: Iterable[WrittenNode]) -> dict[str, int]:
    statuses = [leaf.status for tree in trees for leaf in tree.leaves()]
    return {shown: statuses.count(status) for status, shown in _STATUSES.items()}


class _AnswerPage:
    """Prints one answer: its files, the tree, the pages, and the extracted values."""

    def __init__(
        self,
        console: PlainConsole,
        settings: RunSettings,
        agent_name: str,
        answer: ScoredAnswer,
    ) -> None:
        self._console = console
        self._paths = settings.paths
        self._agent_name = agent_name
        self._answer = answer
        # The part of each page that the judge saw, by address in the order of the tree.
        self._pages: dict[str, PageCheck] = {}

    def print(self, *, has_passed: bool) -> None:
        """Print everything, with the parts of the tree that passed or without."""
        answer = self._answer
        root = self._paths.eval_results_root
        folder = answer_dir(root, self._agent_name, answer.task_id, answer.answer_name)
        stored = latest_result(folder / "results")
        result = stored if answer.reason is None else None
        score = "no result" if answer.score is None else f"score {number(answer.score)}"
        self._line(
            f"{self._agent_name} / {answer.task_id} / {_stem(answer)}: {score}",
            style="bold",
        )
        if answer.reason is not None:
            self._text(f"Reason: {answer.reason}")
        if result is not None:
            self._print_origin(result.content)
        self._print_files(folder, stored)
        if result is not None:
            self._print_trees(result.content, has_passed=has_passed)
            self._print_pages()
            self._print_values(result.content)

    def _print_origin(self, result: ResultFile) -> None:
        facts = result_facts(result)
        created = (result.run.created or "")[:16].replace("T", " ")
        parts = [f"Judged by {facts.judge or 'a judge that the result does not name'}"]
        parts += [f"at {facts.server}"] if facts.server else []
        parts += [f"on {created} UTC"] if created else []
        parts += [f"with the script {facts.script}"] if facts.script else []
        self._text(" ".join(parts) + ".")
        if result.run.judge_check is not None:
            self._text(f"This judge's check: {result.run.judge_check}.")
        if result.doubts:
            self._text(f"In doubt: {'; '.join(result.doubts)}.")
        for fault in result.script_faults:
            self._text(f"Mistake of the script: {fault}.")

    def _print_files(self, folder: Path, stored: LoadedResult | None) -> None:
        files = {"Answer": folder / self._answer.answer_name}
        if stored is not None:
            counts = self._answer.reason is None
            files["Result" if counts else "Earlier result, which does not count"] = stored.path
        files["Log"] = folder / "logs"
        for label, path in files.items():
            if path.exists():
                self._line(f"{label}: {path}")

    def _print_trees(self, result: ResultFile, *, has_passed: bool) -> None:
        self._line("")
        if not result.trees:
            self._line("The script gave this score without a rubric tree.")
        for tree in result.trees:
            counts = _leaf_counts([tree])
            listed = ", ".join(f"{count} {status}" for status, count in counts.items())

            self._text(
                f"Rubric tree: {listed}. A node marked * is critical: it is a gate that the mean "
                "leaves out, and if it scores below 1, its parent is 0."
            )
            explained = explanations(tree)
            for node, above in tree.placed():
                if has_passed or all(each.status != "passed" for each in (*above, node)):
                    self._print_node(node, len(above), explained.get(id(node)))

    def _print_node(self, node: WrittenNode, depth: int, arithmetic: str | None) -> None:
        indent = _INDENT * min(depth, _MAX_INDENTED_LEVELS)
        status = _STATUSES.get(node.status, node.status)
        score = f" {number(node.score)}" if status == "partial" else ""
        is_sequence = node.children and node.strategy == "sequential"
        self._console.print(
            Text.assemble(
                indent,
                (f"{status}{score}", _STYLES.get(status, "")),
                " * " if node.critical else " ",
                (make_visible(node.id), "bold"),
                " (sequential)" if is_sequence else "",
            ),
            soft_wrap=True,
        )
        # The root's description is the task's whole text.
        if depth and node.desc not in ("", node.grounds.claim, node.id):
            self._text(node.desc, indent + _INDENT * 2)
        if arithmetic is not None:
            self._text(make_visible(arithmetic), indent + _INDENT * 2)
        for text in self._reasons(node):
            self._text(text, indent + _INDENT * 2)

    def _reasons(self, node: WrittenNode) -> Iterator[str]:
        yield from self._evidence_lines(node.grounds)
        if node.superseded is not None:
            yield (
                f"Its own verdict was {node.superseded.status}, but an earlier part of the "
                "sequence fell short."
            )
        if node.overruled is not None:
            yield f"Its own verdict was {node.overruled.status}, but the script set another one."

    def _evidence_lines(self, evidence: Evidence) -> Iterator[str]:
        if evidence.claim:
            yield f"Claim: {evidence.claim}"
        if evidence.reason:
            is_error = evidence.decided_by == "error"
            yield f"Error: {evidence.reason}" if is_error else evidence.reason
        yield from _vote_lines(evidence.votes, "the answer")
        for check in evidence.pages:
            self._pages.setdefault(check.url, check)
            outcome = check.outcome.replace("_", " ")
            why = f": {check.reason}" if check.reason else ""
            yield f"Page [{list(self._pages).index(check.url) + 1}]: {outcome}{why}"
            yield from _vote_lines(check.votes, "the page")

    def _print_pages(self) -> None:
        if not self._pages:
            return
        self._line("")
        self._line("Pages", style="bold")
        cache = CacheFileSys(self._paths.cache_root / self._agent_name / self._answer.task_id)
        for place, (url, check) in enumerate(self._pages.items(), start=1):
            self._line(f"[{place}] {url}")
            for text in () if check.page is None else (_shown_text(check.page), *check.page.notes):
                self._text(text, _INDENT * 2)
            files = cache.page_files(url)
            sha256 = check.shown.sha256
            if sha256 and cache.digest(url) != sha256:
                state = "has changed since it was judged" if files else "is no longer stored"
                self._text(f"The page {state}.", _INDENT * 2)
            for path in files:
                self._line(f"{_INDENT * 2}{path}")

    def _print_values(self, result: ResultFile) -> None:
        if lines := list(stored_values(result)):
            self._line("")
            self._line("Extracted values and other information of the script", style="bold")
        for text in lines:
            self._line(text)

    def _line(self, text: str, style: str | None = None) -> None:
        self._console.print(text, style=style, soft_wrap=True)

    def _text(self, text: str, indent: str = "") -> None:
        wrapped = textwrap.fill(
            " ".join(text.split()),
            max(self._console.width, len(indent) + 20),
            initial_indent=indent,
            subsequent_indent=indent and indent + _INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )
        self._line(wrapped)


def _vote_lines(votes: Sequence[Vote], source: str) -> Iterator[str]:
    """Yield votes; equal ones are one line."""
    grouped = Counter(
        (
            _opinion(vote),
            vote.declined or vote.reasoning,
            _quotation(vote.quote, source),
        )
        for vote in votes
    )
    for (opinion, reasoning, quotation), count in grouped.items():
        if len(votes) > 1:
            of_votes = f" ({count} of {len(votes)} votes)"
        else:
            of_votes = ""
        yield f"Judge: {opinion}{of_votes}: {reasoning}"
        if quotation is not None:
            yield quotation


def _opinion(vote: Vote) -> str:
    if vote.declined:
        return "refused to answer"
    return "yes" if vote.supported else "no"


def _quotation(quote: Quote | None, source: str) -> str | None:
    if quote is None or not quote.text:
        return None
    where = {
        "found": "",
        "approximate": ", approximately",
        "not_found": f", not found in {source}",
    }
    return f"Quote from {source}{where[quote.match]}: {json.dumps(quote.text, ensure_ascii=False)}"


def _shown_text(page: PageShown) -> str:
    characters = f"{page.text_chars} of {page.text_chars_stored} characters shown"
    parts = [page.kind, characters, counted(page.images, "image")]
    if page.captured_at:
        parts.append(f"captured {page.captured_at[:16].replace('T', ' ')} UTC")
    if page.troubles:
        parts.append(f"looks wrong: {', '.join(page.troubles).replace('_', ' ')}")
    return ", ".join(parts)
