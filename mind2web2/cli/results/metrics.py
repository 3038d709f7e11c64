"""``mind2web2 metrics`` and ``compare``: the averages of an agent, and whether agents differ."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from mind2web2.analysis.audited import audited_answers
from mind2web2.analysis.changed_pages import changed_pages
from mind2web2.analysis.citation import paper_sentence
from mind2web2.analysis.comparison import AgentComparison, compared_with_first, ranking
from mind2web2.analysis.corrections import Correction, CorrectionRoots, NoCorrection, correction_of
from mind2web2.analysis.false_pass_bound import FalsePassBound, false_pass_bound
from mind2web2.analysis.judge_checks import failed_check
from mind2web2.analysis.judgings import Judging, leaf_flips
from mind2web2.analysis.leaf_report import TaskReport
from mind2web2.analysis.score_matrix import NO_ANSWER, NO_RUNS
from mind2web2.analysis.summaries import (
    SummedUp,
    merge_all_results,
    stored_metrics,
    summarised_answers,
)
from mind2web2.analysis.tag_figures import domain_figures, tag_figures, weighted_figure
from mind2web2.analysis.unreviewed import unreviewed_warning
from mind2web2.cli.console import line, plain_console, warnings_on
from mind2web2.cli.evaluate_report import lasting_cautions
from mind2web2.cli.results.chosen import check_record, chosen_tasks, domains_of, no_results
from mind2web2.cli.results.corrections import (
    corrected_pairs,
    correction_lines,
    pair_lines,
)
from mind2web2.cli.results.leaves import leaf_reports, print_leaves
from mind2web2.cli.results.tables import (
    junit_suite,
    junit_xml,
    print_comparison,
    print_metrics,
    print_now,
    print_ranking,
    print_variation,
    print_verdict,
    print_verdicts,
)
from mind2web2.cli.settings_file import paths_of, settings_of
from mind2web2.cli.suggestions import suggested_evaluation, suggested_forgetting
from mind2web2.errors import ResultWriteError, UsageError
from mind2web2.hooks import Figure, agent_figures
from mind2web2.results.agent_summary import AgentSummary
from mind2web2.results.caution_facts import CautionFacts
from mind2web2.results.freshness import ResultsNow, results_now
from mind2web2.results.known_answers import agent_answers
from mind2web2.results.model_families import own_family_caution
from mind2web2.results.result_file import ResultFile
from mind2web2.results.scored_answer import ScoredAnswer
from mind2web2.results.shard_states import shard_caution, shard_test
from mind2web2.results.stored_results import LoadedResult, latest_results
from mind2web2.runs.settings import RunSettings
from mind2web2.statistics.uncertainty import Interval
from mind2web2.utils.files import write_whole
from mind2web2.utils.names import check_name
from mind2web2.utils.path_config import PathConfig
from mind2web2.utils.program import program
from mind2web2.utils.text import counted

BELOW = 5


class _Agent(NamedTuple):
    name: str
    answers: list[ScoredAnswer]
    summary: AgentSummary
    results: dict[tuple[str, str], ResultFile]
    now: ResultsNow
    newest: ResultFile | None
    cautions: list[str]
    not_written: str | None
    correction: Correction | NoCorrection | None
    sentence: str | None
    of_plugins: Mapping[str, Figure]
    bound: FalsePassBound | None = None


def run(options: argparse.Namespace) -> int:
    """Print the metrics and return the exit status: 5 below ``--fail_under``, 1 where a result is missing."""
    names = [check_name("agent", name) for name in options.agents]
    if len(set(names)) < len(names):
        raise UsageError("an agent is named twice: name each one once")
    settings = settings_of(options)
    paths = paths_of(settings, *names)
    if settings.eval_version is not None:
        paths.script_versions()  # raises where the version does not exist
    task_ids, domains = chosen_tasks(settings), domains_of(settings)
    removed = [_removed_folder(paths, names, task_id) for task_id in dict.fromkeys(options.forget)]
    deleted = [_deleted(paths, folder) for folder in removed]
    console = plain_console()
    with warnings_on(console):
        roots = CorrectionRoots(paths.eval_results_root, options.audits_root, options.rejudged_root)
        agents = [_summed_up(settings, paths, name, task_ids, roots) for name in names]
    if options.bound_false_passes:
        root = paths.eval_results_root
        agents = [each._replace(bound=_bound(root, each, task_ids)) for each in agents]
    comparisons = compared_with_first([(agent.name, agent.answers) for agent in agents], task_ids)
    reports = _leaf_reports(agents, task_ids) if options.leaves else []
    if options.json:
        more = {"leaves": [asdict(report) for report in reports]} if options.leaves else {}
        _print_json(console, agents, comparisons, domains, more, by_tag=options.by_tag)
    else:
        for text in deleted:
            line(console, text)
        for agent in agents:
            _print_agent(console, settings, agent)
            _print_domains(console, agent, domains)
            if options.by_tag:
                _print_tags(console, agent)
        for comparison in comparisons:
            print_comparison(console, comparison)
        print_leaves(console, reports, is_whole=bool(settings.task_ids))
    if options.junit is not None:
        _write_junit(options.junit, agents)
    below = _below(agents, options.fail_under)
    if below:
        if not options.json:
            listed = ", ".join(below)
            line(console, f"Below --fail_under {options.fail_under:g}: {listed}")
        return BELOW
    is_incomplete = any(agent.summary.missing or agent.now.unevaluated for agent in agents)
    return 1 if is_incomplete else 0


def _leaf_reports(agents: Sequence[_Agent], task_ids: Sequence[str] | None) -> list[TaskReport]:
    named = [(each.name, each.results) for each in agents]
    reports = leaf_reports(named)
    return [each for each in reports if task_ids is None or each.task_id in task_ids]


def _bound(
    eval_results_root: Path, agent: _Agent, task_ids: Sequence[str] | None
) -> FalsePassBound:
    """Return the bound of an agent's score by its judge's false passes.

    Raises:
        UsageError: its judge was not asked about changed pages, or about too few.
    """
    judges = {answer.facts.judge for answer in agent.answers if answer.score is not None}
    reports = [each for each in changed_pages(agent.name) if {each.judge} == judges]
    if not reports:
        raise UsageError(
            f"--bound_false_passes: no figures of changed pages of {agent.name} by its one judge: "
            f"{program()} plugins lists what makes some"
        )
    answers = audited_answers(eval_results_root, agent.name, task_ids)
    bound = false_pass_bound(answers, reports[0])
    if bound is None:
        raise UsageError(
            f"--bound_false_passes: the changed pages of {agent.name} are too few for an interval"
        )
    return bound


def _below(agents: Sequence[_Agent], limit: float | None) -> list[str]:
    """Return the agents whose partial completion is below ``--fail_under``, each with it."""
    if limit is None:
        return []
    found = []
    for agent in agents:
        score = agent.summary.shown_score
        if score is not None and score < limit:
            found.append(f"{agent.name} {score:g}")
    return found


def _write_junit(path: Path, agents: Sequence[_Agent]) -> None:

    suites = [
        junit_suite(agent.summary, agent.answers, agent.results, agent.now.unevaluated)
        for agent in agents
    ]
    try:
        write_whole(path, junit_xml(suites))
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def _summed_up(
    settings: RunSettings,
    paths: PathConfig,
    agent_name: str,
    task_ids: list[str] | None,
    roots: CorrectionRoots,
) -> _Agent:

    root = paths.eval_results_root
    not_written = None
    check_record(settings, root, agent_name)
    try:
        found = summarised_answers(root, agent_name, task_ids)
    except ResultWriteError as error:
        # A folder that is shared for reading is summed up without being written to.
        not_written = str(error)
        answers = agent_answers(root, agent_name)
        found = None
        if answers:
            metrics = stored_metrics(root, agent_name, answers, task_ids)
            found = SummedUp(answers, metrics)
    if found is None:
        raise no_results(settings, root, agent_name)
    answers, summary = found.answers, found.summary
    results = list(latest_results(root, agent_name))
    newest = max(
        (each for _, _, each in results),
        key=lambda found: found.path.name,
        default=None,
    )
    correction = correction_of(roots, agent_name, task_ids)
    scored = {
        (answer.task_id, answer.answer_name) for answer in answers if answer.score is not None
    }
    cautious = [
        CautionFacts.of(task_id, name, each.content)
        for task_id, name, each in results
        if (task_id, name) in scored and (task_ids is None or task_id in task_ids)
    ]
    shown = [answer for answer in answers if (answer.task_id, answer.answer_name) in scored]
    judges = {answer.facts.judge for answer in shown if answer.facts.judge}
    own_family = own_family_caution(paths.answers_root / agent_name, judges)
    unreviewed = unreviewed_warning(
        paths.eval_scripts_root, (answer.facts.script for answer in shown)
    )
    if unreviewed is not None:
        # Not in summary.json: it holds until a person reviews the file.
        summary = summary.model_copy(update={"warnings": (*summary.warnings, unreviewed)})
    return _Agent(
        name=agent_name,
        answers=answers,
        summary=summary,
        results={(task_id, name): each.content for task_id, name, each in results},
        now=results_now(paths, agent_name, answers, task_ids),
        newest=None if newest is None else newest.content,
        cautions=[*lasting_cautions(cautious), *([own_family] if own_family else [])],
        not_written=not_written,
        correction=correction,
        sentence=_sentence(summary, answers, results, correction),
        of_plugins=agent_figures(root, agent_name),
    )


def _sentence(
    summary: AgentSummary,
    answers: Sequence[ScoredAnswer],
    results: Sequence[tuple[str, str, LoadedResult]],
    correction: Correction | NoCorrection | None,
) -> str | None:
    """Return the sentence for a paper, ``None`` without a score."""
    score = summary.shown_score
    if score is None:
        return None
    found = summary.shown_intervals["avg_score"]
    interval = None
    if found.low is not None and found.high is not None:
        interval = Interval(found.low, found.high)
    own = [
        answer for answer in answers if answer.score is not None and answer.task_id in summary.tasks
    ]
    places = {(answer.task_id, answer.answer_name) for answer in own}
    files = [each.content for task, name, each in results if (task, name) in places]
    return paper_sentence(summary, own, files, score, interval, correction)


def _removed_folder(paths: PathConfig, names: Sequence[str], task_id: str) -> Path:
    """Return the folder with the results of a task that has no answers any more."""
    if len(names) > 1:
        raise UsageError("--forget goes with one agent")
    folder = paths.eval_results_root / names[0] / check_name("task", task_id)
    answers = paths.answers_root / names[0] / task_id
    if not folder.is_dir() or (
        not any(folder.glob("summary.json")) and not any(folder.glob("*/results"))
    ):
        raise UsageError(f"--forget {task_id}: there are no results in {folder}")
    if not answers.parent.is_dir():
        raise UsageError(
            f"--forget {task_id}: there is no folder {answers.parent} that tells whether the task has "
            "answers: name the answers with --answer_folder"
        )
    if any(answers.glob("answer_*.md")):
        raise UsageError(
            f"--forget {task_id}: the task has answers in {answers}; remove that folder first"
        )
    return folder


def _deleted(paths: PathConfig, folder: Path) -> str:
    """Delete the results of a task, and return one line about it."""
    results = len(list(folder.glob("*/results/*.md.json")))
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise ResultWriteError(f"cannot delete {folder}: {error.strerror or error}") from error
    merge_all_results(paths.eval_results_root)
    return f"Deleted {folder} with {counted(results, 'result')}."


def _print_json(
    console: Console,
    agents: Sequence[_Agent],
    comparisons: Sequence[AgentComparison],
    domains: Mapping[str, str],
    more: Mapping[str, object],
    *,
    by_tag: bool,
) -> None:

    contents = [
        {
            **agent.summary.as_json(),
            **asdict(agent.now),
            "corrected": None
            if agent.correction is None
            else agent.correction.figures().model_dump(mode="json"),
            "cautions": agent.cautions,
            "sentence": agent.sentence,
            **(
                {}
                if agent.bound is None
                else {"bound_false_passes": agent.bound.model_dump(mode="json")}
            ),
            "figures": {name: each.content for name, each in agent.of_plugins.items()},
        }
        for agent in agents
    ]
    if by_tag:
        tags = ([asdict(figure) for figure in tag_figures(agent.results)] for agent in agents)
        contents = [
            content | {"by_tag": figures} for content, figures in zip(contents, tags, strict=True)
        ]
    if domains:
        contents = [
            content | {"by_domain": [asdict(each) for each in domain_figures(tasks, domains)]}
            for content, tasks in zip(
                contents, (agent.summary.tasks for agent in agents), strict=True
            )
        ]
    content: dict[str, object] = contents[0]
    if len(agents) > 1:
        content = {
            "agents": contents,
            "comparisons": [each.model_dump(mode="json") for each in comparisons],
        }
    console.print_json(json.dumps(content | dict(more)))


def _print_domains(console: Console, agent: _Agent, domains: Mapping[str, str]) -> None:

    for figure in domain_figures(agent.summary.tasks, domains):
        line(
            console,
            f"{agent.name}, domain {figure.domain}: partial completion {figure.avg_score:.4f}, "
            f"pass@{agent.summary.num_runs} {figure.pass_at_k:.4f} ({counted(figure.tasks, 'task')})",
        )


def _print_tags(console: Console, agent: _Agent) -> None:

    figures = tag_figures(agent.results)
    if not figures:
        line(
            console,
            f"{agent.name}: no leaf has a tag (tags=[...] in scripts, tags: in rubric files)",
        )
    for figure in figures:
        leaves = counted(figure.leaves, "leaf")
        counts = f"{leaves} of {counted(figure.answers, 'answer')}, {counted(figure.tasks, 'task')}"
        line(
            console,
            f"{agent.name}, tag {figure.tag}: {figure.passed:.3f} of its leaves passed ({counts})",
        )


def _print_agent(console: Console, settings: RunSettings, agent: _Agent) -> None:

    summary = agent.summary
    has_scores = summary.avg_score is not None
    if has_scores:
        print_metrics(console, summary)
    else:
        line(console, f"No answer of {agent.name} has a score.")
    for missing in summary.missing:
        # A warning sums up the answers that do not exist.
        if missing.reason not in (NO_ANSWER, NO_RUNS):
            name = f"{missing.task_id}/{missing.answer_name}"
            line(console, f"No result: {name}: {missing.reason}")
    if has_scores:
        _print_grounds(console, settings, agent)
    # The other shards judge the rest, and the caution says so.
    holds = shard_test(paths_of(settings, agent.name).eval_results_root / agent.name)
    own = tuple(name for name in agent.now.unevaluated if holds(*name.split("/")))
    made_from = None if agent.newest is None else agent.newest.provenance
    evaluate = suggested_evaluation(settings, agent.name, made_from)
    print_now(console, replace(agent.now, unevaluated=own), evaluate)
    if agent.now.removed:
        line(
            console,
            f"Note: {suggested_forgetting(settings, agent.name, agent.now.removed)}",
        )
    if agent.not_written:
        line(console, f"Warning: the numbers were not stored: {agent.not_written}")
    if agent.sentence is not None:
        line(console, f"To copy: {agent.sentence}")


def _print_grounds(console: Console, settings: RunSettings, agent: _Agent) -> None:
    """Print what the scores rest on: corrections, verdicts, variation and checks of the judge."""
    summary = agent.summary
    if agent.correction is not None:
        for text in correction_lines(agent.correction.figures()):
            line(console, text)
    if agent.bound is not None:
        line(console, str(agent.bound))
    print_verdicts(console, summary.verdicts)
    print_variation(console, summary)
    if weighted := weighted_figure(agent.results):
        mean, count = weighted
        line(
            console,
            f"Weighted figure of {counted(count, 'answer')}: {mean:.3f} (the score has no weights)",
        )
    judges = {
        (each.facts.judge, each.facts.server) for each in agent.answers if each.score is not None
    }
    # If there are several judges, the newest result names the check of one.
    check = None if agent.newest is None else agent.newest.run.judge_check
    if len(judges) == 1 and check is not None:
        line(console, f"The judge's check when these scores were made: {check}.")
    if judge := failed_check(paths_of(settings, agent.name).eval_results_root, agent.name):
        line(console, f"Warning: {judge}")
    for caution in agent.cautions:
        line(console, f"Warning: {caution}")
    for figure in agent.of_plugins.values():
        for text in figure.lines:
            line(console, text)


WORSE = 4


def run_compare(options: argparse.Namespace) -> int:
    """Print the comparison and return the exit status: 4 where ``--fail_if_worse`` applies."""
    names = [name.rstrip("/") for name in options.agents]
    if len(set(names)) < max(2, len(names)):
        raise UsageError(
            f"name at least two agents, each one once: {program()} compare {names[0]} OTHER_AGENT"
        )
    settings = settings_of(options)
    task_ids = chosen_tasks(settings)
    folders = {name: _results_folder(settings, name) for name in names}
    agents = {name: Judging.read(folder.parent, folder.name) for name, folder in folders.items()}
    found = ranking(
        [(name, own.answers) for name, own in agents.items()],
        task_ids,
        allow_unfair=options.allow_unfair,
    )
    shards = {name: shard_caution(folder) for name, folder in folders.items()}
    judges = {name: failed_check(folder.parent, folder.name) for name, folder in folders.items()}
    cautions = [
        f"{name}: {caution}" for name, caution in (*shards.items(), *judges.items()) if caution
    ]
    found = found.model_copy(update={"warnings": (*cautions, *found.warnings)})
    first, *others = agents
    corrected = []
    if options.corrected:
        shared = set(found.tasks).intersection(
            *({task for task, _ in own.scores()} for own in agents.values())
        )
        roots = CorrectionRoots(Path(), options.audits_root, options.rejudged_root)
        corrected = corrected_pairs(roots, folders, shared)
    leaves = {
        name: {place: leaf for place, leaf in own.leaves.items() if place[0] in found.tasks}
        for name, own in agents.items()
    }
    flips = {other: leaf_flips(leaves[first], leaves[other]) for other in others}
    pairs = found.metrics["avg_score"].against(first)
    margin = options.fail_if_worse
    worse = (
        [] if margin is None else [name for name, pair in pairs.items() if pair.is_worse_by(margin)]
    )
    if options.json:
        content = {
            **found.model_dump(mode="json"),
            "flipped_leaves": {name: asdict(own) for name, own in flips.items()},
            "worse": worse,
        }
        if options.corrected:
            content["corrected"] = [pair.model_dump(mode="json") for pair in corrected]
        plain_console().print_json(json.dumps(content))
    else:
        print_ranking(plain_console(), found, flips)
        for pair in corrected:
            for text in pair_lines(pair):
                line(plain_console(), text)
        if margin is not None:
            print_verdict(plain_console(), found, worse, margin)
    return WORSE if worse else 0


def _results_folder(settings: RunSettings, name: str) -> Path:
    """Return the folder of results that an argument names."""
    if "/" in name:
        folder = Path(name)
    else:
        folder = paths_of(settings, name).eval_results_root / check_name("agent", name)
    check_record(settings, folder.parent, folder.name)
    return folder
