"""An evaluation of an agent's answers by a command: what it will cost, and the run itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mind2web2.cli.evaluation_plan import EvaluationPlan
from mind2web2.cli.options import load_function
from mind2web2.results.answers import select_work
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
