"""``mind2web2 rejudge``: judge answers again, to see how far scores depend on the judge."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mind2web2.plugin import (
    JudgedAgain,
    LoadedResult,
    PlainConsole,
    RunSettings,
    StrongSample,
    TaskWork,
    UsageError,
    agent_answers,
    budget_of,
    check_name,
    counted,
    endpoint_of,
    judge_spec,
    latest_results,
    prepare_settings,
    print_estimate,
    recorded_settings,
    require_results,
    run_evaluation,
    sample_lines,
    select_work,
    settings_of,
)

_TIMES = 3
_JUDGE = (
    "llm_provider",
    "judge_model",
    "judge_reasoning_effort",
    "judge_temperature",
    "judge_extra_body",
    "judge_base_url",
)


@dataclass(frozen=True)
class _Agent:
    """An agent with its results that count, and the settings by which it is judged again."""

    name: str
    settings: RunSettings
    work: list[TaskWork]
    folder: Path
    times: int
    is_other: bool


def run(options: argparse.Namespace) -> int:
    """Judge again, print the figures and return the exit status."""
    if options.sample is not None and options.times is not None:
        raise UsageError("--sample judges answers once: leave --times out")
    if options.seed and options.sample is None:
        raise UsageError("--seed goes with --sample")
    # The JSON does not contain the output of the evaluations.
    with redirect_stdout(sys.stderr) if options.json else nullcontext():
        agent = _agent(options)
        if options.sample is not None:
            sample = _sample_of(agent, options.sample, options.seed)
            if agent.settings.estimate:
                return _print_estimate(agent, sample.work_on(sample.size), 1)
            purse = _Purse.of(agent)
            status, figures = sample.judged_by(lambda work: _judge_once(agent, 1, work, purse))
        elif agent.settings.estimate:
            return _print_estimate(agent, agent.work, agent.times)
        else:
            status = _judge_all(agent)
    if status not in (0, 1):
        return status
    if options.sample is not None:
        lines, content = sample_lines(agent.name, figures), figures.model_dump_json()
    else:
        roots = [agent.folder / str(number) for number in _numbers(agent)]
        found = JudgedAgain.read(agent.name, agent.settings.paths.eval_results_root, roots)
        lines, content = found.lines(), json.dumps(asdict(found))
    _print(lines, content, is_json=options.json)
    return status


def _print(lines: Iterable[str], content: str, *, is_json: bool) -> None:
    console = PlainConsole()
    if is_json:
        console.print_json(content)
        return
    for text in lines:
        console.print_line(text)


# The work that is judged again


def _agent(options: argparse.Namespace) -> _Agent:
    name = check_name("agent", options.agent.rstrip("/"))
    # The judge may come from the results, which are below these folders.
    folders = settings_of(options, leave_out=_JUDGE)
    if folders.estimate and options.json:
        raise UsageError("--estimate prints a table: leave --json out")
    paths = folders.paths
    require_results(paths.eval_results_root, name)
    results = [found for _, _, found in latest_results(paths.eval_results_root, name)]
    newest = max(results, key=lambda found: found.path.name, default=None)
    inherited, is_other = _inherit_judge(folders, newest)
    own = settings_of(options, is_announced=True, no_capture=True, **inherited)
    if own.is_replay:
        raise UsageError(
            "a replay asks no judge: name the judge with --judge_model, and --llm_provider or "
            "--judge_base_url"
        )
    own = prepare_settings(own)
    answers = agent_answers(paths.eval_results_root, name)
    scored = {(each.task_id, each.answer_name) for each in answers if each.score is not None}
    work = [
        replace(
            task,
            answers=tuple(each for each in task.answers if (task.task_id, each.name) in scored),
        )
        for task in select_work(paths, name, own.task_ids)
    ]
    work = [task for task in work if task.answers]
    if not work:
        raise UsageError(f"no answer of {name} has a score: evaluate it first")
    record = judge_spec(own).record()
    is_other = is_other and not _is_named_again(own, newest)
    digest = hashlib.sha256(record.model_dump_json().encode()).hexdigest()[:8]
    folder = options.rejudged_root / f"{re.sub(r'[^A-Za-z0-9.-]+', '_', record.model)}-{digest}"
    times = options.times or (1 if is_other else _TIMES)
    return _Agent(name, own, work, folder, times, is_other)


def _inherit_judge(named: RunSettings, newest: LoadedResult | None) -> tuple[dict[str, Any], bool]:
    """Return the settings that come from the newest result.

    The judge does, unless the command line names one. Also return whether it does.
    """
    made_from = None if newest is None else newest.content.provenance
    made = RunSettings() if made_from is None else recorded_settings(made_from)
    of_script = {
        "as_of": named.as_of or made.as_of,
        "allow_private_network": made.allow_private_network,
    }
    own = named.given & set(_JUDGE)
    # A server alone does not name another model.
    if not own <= {"judge_base_url"}:
        return of_script, True
    taken = {
        name: getattr(made, name) for name in {*_JUDGE, "no_screenshots", "votes"} - named.given
    }
    is_elsewhere = bool(own) and _is_elsewhere(replace(named, **taken), newest)
    if not made.judge_base_url:
        # The settings file may name the server, and replaces nothing else.
        taken.pop("judge_base_url", None)
    return of_script | taken, is_elsewhere


def _is_named_again(settings: RunSettings, newest: LoadedResult | None) -> bool:
    """Tell whether the command line names the judge that a result has."""
    made_from = None if newest is None else newest.content.provenance
    if made_from is None or _is_elsewhere(settings, newest):
        return False
    rest = {"provider", "endpoint", "votes"}
    named = judge_spec(settings).record()
    return named.model_dump(exclude=rest) == made_from.judge.model_dump(exclude=rest)


def _is_elsewhere(settings: RunSettings, newest: LoadedResult | None) -> bool:
    """Tell whether a judge has another server than that of a result."""
    made_from = None if newest is None else newest.content.provenance
    if made_from is None or settings.is_replay:
        return True
    endpoint = endpoint_of(settings.llm_provider, settings.judge_base_url)
    return endpoint != made_from.judge.endpoint


def _numbers(agent: _Agent) -> range:
    return range(1, agent.times + 1)


def _judge_all(agent: _Agent) -> int:
    """Judge as often as wanted.

    Return 1 where an answer has no result, another status to stop with.
    """
    status = 0
    purse = _Purse.of(agent)
    for each in _numbers(agent):
        PlainConsole().print_line(f"{agent.name}: judgment {each} of {agent.times}")
        ended, is_cut = _judge_once(agent, each, agent.work, purse)
        if ended not in (0, 1):
            return ended
        status = max(status, ended)
        if is_cut:
            return 1
    return status


@dataclass
class _Purse:
    """The rest of ``--max_cost`` for all judgments of the command."""

    left: float | None

    @classmethod
    def of(cls, agent: _Agent) -> _Purse:
        """Return the money that the command line gives."""
        return cls(agent.settings.max_cost)


def _judge_once(
    agent: _Agent, number: int, work: Sequence[TaskWork], purse: _Purse
) -> tuple[int, bool]:
    """Judge answers of an agent; return the exit status and whether the money is spent."""
    settings = replace(
        agent.settings,
        eval_results_root=agent.folder / str(number),
        max_cost=purse.left,
    )
    budget = budget_of(settings)
    paths = settings.paths
    ended = run_evaluation(
        settings,
        agent.name,
        paths,
        list(work),
        budget=budget,
        checked=agent.settings,
        # Judgments of another agent's round would make equal answers vary as one.
        other_stores=(),
    )
    if budget is None or purse.left is None:
        return ended, False
    purse.left = round(purse.left - budget.spent_usd, 6)
    is_spent = budget.is_reached or purse.left <= 0
    if is_spent:
        PlainConsole().print_line("--max_cost is reached. The same command continues.")
    return ended, is_spent


def _sample_of(agent: _Agent, size: int, seed: int) -> StrongSample:
    judge = judge_spec(agent.settings).model
    if not agent.is_other:
        raise UsageError(
            "--sample needs a better judge than that of the results: name it with --judge_model"
        )
    root = agent.settings.paths.eval_results_root
    folder = agent.folder / "1"
    return StrongSample.draw(agent.name, judge, folder, root, agent.work, size=size, seed=seed)


def _print_estimate(agent: _Agent, work: Sequence[TaskWork], times: int) -> int:
    # By the results that count: what was judged again before is not asked again.
    settings = replace(agent.settings, overwrite=True)
    PlainConsole().print_line(f"{agent.name}: each of {counted(times, 'judgment')} takes:")
    print_estimate(settings, agent.name, settings.paths, list(work))
    return 0
