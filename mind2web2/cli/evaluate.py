"""``mind2web2 evaluate`` and ``run_eval.py``: judge an agent's answers.

Other commands have answers judged by the same ``AgentEvaluation``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mind2web2.cli.evaluation_plan import EvaluationPlan
from mind2web2.cli.options import given_settings, load_function, settings_of
from mind2web2.errors import UsageError
from mind2web2.results.answers import chosen_work, select_work
from mind2web2.results.scored_answer import ScoredAnswer, scored_answers
from mind2web2.runs.settings import PLAIN, RunSettings
from mind2web2.scripts.isolation.homes import fork_server
from mind2web2.utils.hidden_keys import hide_memory

if TYPE_CHECKING:
    from mind2web2.judge.budget import Budget
    from mind2web2.judge.record import JudgeRecord
    from mind2web2.judge.spec import JudgeSpec


@dataclass(frozen=True)
class AgentEvaluation(EvaluationPlan):
    """An evaluation of an agent's answers.

    The judge's libraries take a while to load, so that each method imports those that it needs.
    """

    @classmethod
    def of(cls, settings: RunSettings, agent_name: str) -> AgentEvaluation:
        """Check the settings and select the work; start what starts scripts, if this machine does.

        Raises:
            UsageError: settings contradict each other, this system lacks something that they need,
                or there is no such agent, answer or script.
        """
        settings.check()
        hide_memory()
        if not settings.estimate and settings.engine == PLAIN:
            # It loads what scripts need while this process loads what judges need.
            fork_server.warm_up()
        return cls(settings, agent_name, select_work(settings.paths, agent_name, settings.task_ids))

    def of_scored(self, answers: Iterable[ScoredAnswer]) -> AgentEvaluation:
        """Return the evaluation of those of these answers that have a score."""
        places = {answer.place for answer in scored_answers(answers)}
        return replace(self, work=chosen_work(self.work, places))

    def judge_record(self) -> JudgeRecord:
        """Return the judge as results will record it."""
        return self._judge().record()

    def check_judge(self) -> None:
        """Make sure that the judge can be asked. Raises UsageError: something is missing."""
        load_function("mind2web2.runs.session:judge_client")(self._judge())

    def _judge(self) -> JudgeSpec:
        judge: JudgeSpec = load_function("mind2web2.runs.named_judge:judge_spec")(self.settings)
        return judge

    def new_budget(self) -> Budget | None:
        """Return a budget of ``--max_cost``, ``None`` without it."""
        budget: Budget | None = load_function("mind2web2.runs.session:budget_of")(self.settings)
        return budget

    def estimate(self) -> int:
        """Print what it would take, and return the exit status."""
        status: int = load_function("mind2web2.cli.estimate:print_estimate")(self)
        return status

    def run(self) -> int:
        """Evaluate the answers, print the report, and return the exit status."""
        status: int = load_function("mind2web2.cli.evaluate_run:run_evaluation")(self)
        return status


def run(options: argparse.Namespace) -> int:
    """Evaluate and return the exit status."""
    agent_name = _agent_name(given_settings(options).agent_name, options.agent)
    settings = settings_of(options, is_announced=True, agent_name=agent_name)
    # Captures fill a new folder; without them, a typing error would fail every claim.
    root, captures = settings.paths.cache_root, settings.captures_pages
    if settings.cache_root is not None and not root.is_dir() and (root.exists() or not captures):
        raise UsageError(f"--cache_root {root} is not a folder: name the one with the cached pages")
    evaluation = AgentEvaluation.of(settings, agent_name)
    if settings.shard is not None:
        evaluation = replace(evaluation, work=settings.shard.share_of(evaluation.work))
    if settings.estimate:
        return evaluation.estimate()
    if settings.engine != PLAIN:
        evaluate = load_function(f"mind2web2_{settings.engine}.engine:evaluate")
        status: int = evaluate(evaluation)
        return status
    return evaluation.run()


def _agent_name(*candidates: str | None) -> str:
    names = list(filter(None, candidates))
    if not names:
        raise UsageError(
            "name the agent to evaluate, a folder under answers/: mind2web2 evaluate AGENT, or "
            "--agent_name NAME"
        )
    if len(set(names)) > 1:
        raise UsageError(f"name one agent, not {' and '.join(names)}")
    return names[0].rstrip("/")  # which a shell's completion adds
