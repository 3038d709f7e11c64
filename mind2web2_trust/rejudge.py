"""``mind2web2 rejudge``: judge answers again, to see how far scores depend on the judge."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from contextlib import nullcontext, redirect_stdout
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mind2web2.plugin import (
    AgentEvaluation,
    AgentResults,
    JudgedAgain,
    PlainConsole,
    RunSettings,
    StrongSample,
    UsageError,
    check_name,
    counted,
    recorded_settings,
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
    """An agent with the evaluation that judges it again.

    Args:
        folder: of the new results, one below it for each time.
    """

    evaluation: AgentEvaluation
    folder: Path
    times: int
    is_other: bool

    @property
    def name(self) -> str:
        """Return the agent's name."""
        return self.evaluation.agent_name

    @property
    def settings(self) -> RunSettings:
        """Return the settings by which it is judged again."""
        return self.evaluation.settings


def run(options: argparse.Namespace) -> int:
    """Judge again, print the figures and return the exit status."""
    if options.seed and options.sample is None:
        raise UsageError("--seed goes with --sample")
    # The JSON does not contain the output of the evaluations.
    with redirect_stdout(sys.stderr) if options.json else nullcontext():
        agent = _agent(options)
        if options.sample is not None:
            sample = _sample_of(agent, options.sample, options.seed)
            if agent.settings.estimate:
                work = sample.work_on(sample.size)
                return _print_estimate(replace(agent.evaluation, work=work), 1)
            status, figures = sample.judged_by(
                lambda work: _judge_once(agent, replace(agent.evaluation, work=work), 1)
            )
        elif agent.settings.estimate:
            return _print_estimate(agent.evaluation, agent.times)
        else:
            status = _judge_all(agent)
    if status not in (0, 1):
        return status
    if options.sample is not None:
        lines, content = figures.lines(agent.name), figures.model_dump_json()
    else:
        roots = [agent.folder / str(number) for number in _numbers(agent)]
        again = JudgedAgain.read(agent.name, agent.settings.paths.eval_results_root, roots)
        lines, content = again.lines(), json.dumps(asdict(again))
    if options.json:
        PlainConsole().print_json(content)
    else:
        PlainConsole().print_lines(lines)
    return status


# The work that is judged again


def _agent(options: argparse.Namespace) -> _Agent:
    name = check_name("agent", options.agent.rstrip("/"))
    # The judge may come from the results, which are below these folders.
    folders = settings_of(options, leave_out=_JUDGE)
    if folders.estimate and options.json:
        raise UsageError("--estimate prints a table: leave --json out")
    paths = folders.paths
    stored = AgentResults(paths.eval_results_root, name)
    stored.require()
    made_from = stored.made_from()
    made = RunSettings() if made_from is None else recorded_settings(made_from)
    inherited = _inherited(folders, made)
    own = settings_of(options, is_announced=True, no_capture=True, **inherited)
    if own.is_replay:
        raise UsageError(
            "a replay asks no judge: name the judge with --judge_model, and --llm_provider or "
            "--judge_base_url"
        )
    evaluation = AgentEvaluation.of(own, name).of_scored(stored.answers())
    if not evaluation.work:
        raise UsageError(f"no answer of {name} has a score: evaluate it first")
    record = evaluation.judge_record()
    if made_from is None:
        is_other = not folders.given.isdisjoint(_JUDGE)
    else:
        # Another server may have another model of the same name.
        rest = {"provider", "votes"}
        is_other = record.model_dump(exclude=rest) != made_from.judge.model_dump(exclude=rest)
    digest = hashlib.sha256(record.model_dump_json().encode()).hexdigest()[:8]
    folder = options.rejudged_root / f"{re.sub(r'[^A-Za-z0-9.-]+', '_', record.model)}-{digest}"
    times = options.times or (1 if is_other else _TIMES)
    # All judgments of the command share it.
    budget = evaluation.new_budget()
    return _Agent(replace(evaluation, budget=budget), folder, times, is_other)


def _inherited(named: RunSettings, made: RunSettings) -> dict[str, Any]:
    """Return the settings that come from the newest result.

    The judge does, unless the command line names one.
    """
    inherited = {
        "as_of": named.as_of or made.as_of,
        "allow_private_network": made.allow_private_network,
    }
    # A server alone does not name another model.
    if named.given & set(_JUDGE) <= {"judge_base_url"}:
        names = {*_JUDGE, "no_screenshots", "votes"} - named.given
        if not made.judge_base_url:
            # The settings file may name the server, and replaces nothing else.
            names.discard("judge_base_url")
        inherited |= {name: getattr(made, name) for name in names}
    return inherited


def _numbers(agent: _Agent) -> range:
    return range(1, agent.times + 1)


def _judge_all(agent: _Agent) -> int:
    """Judge as often as wanted.

    Return 1 where an answer has no result, another status to stop with.
    """
    status = 0
    for each in _numbers(agent):
        PlainConsole().print_line(f"{agent.name}: judgment {each} of {agent.times}")
        ended, is_cut = _judge_once(agent, agent.evaluation, each)
        if ended not in (0, 1):
            return ended
        status = max(status, ended)
        if is_cut:
            return 1
    return status


def _judge_once(agent: _Agent, evaluation: AgentEvaluation, number: int) -> tuple[int, bool]:
    """Judge answers of an agent; return the exit status and whether the money is spent."""
    settings = replace(agent.settings, eval_results_root=agent.folder / str(number))
    ended = replace(
        evaluation,
        settings=settings,
        checked=agent.settings,
        shows_scores=False,
        # Judgments of another agent's round would make equal answers vary as one.
        other_stores=(),
    ).run()
    return ended, evaluation.budget is not None and evaluation.budget.is_reached


def _sample_of(agent: _Agent, size: int, seed: int) -> StrongSample:
    judge = agent.evaluation.judge_record().model
    if not agent.is_other:
        raise UsageError(
            "--sample needs a better judge than that of the results: name it with --judge_model"
        )
    root = agent.settings.paths.eval_results_root
    folder = agent.folder / "1"
    work = agent.evaluation.work
    return StrongSample.draw(agent.name, judge, folder, root, work, size=size, seed=seed)


def _print_estimate(evaluation: AgentEvaluation, times: int) -> int:
    # By the results that count: what was judged again before is not asked again.
    settings = replace(evaluation.settings, overwrite=True)
    name, judgments = evaluation.agent_name, counted(times, "judgment")
    PlainConsole().print_line(f"{name}: each of {judgments} takes:")
    return replace(evaluation, settings=settings).estimate()
