"""Running tasks from Python, under the names that callers import."""

from typing import TYPE_CHECKING

from mind2web2.scripts.limits import DualSemaphore
from mind2web2.utils import late_names

if TYPE_CHECKING:
    from mind2web2.analysis.summaries import generate_result_summary, merge_all_results
    from mind2web2.runs.task import evaluate_task

# These modules are loaded at first use. Eval scripts import only the semaphore, and each of their
# processes would wait for the rest.
_HOMES = {
    "evaluate_task": "mind2web2.runs.task",
    "generate_result_summary": "mind2web2.analysis.summaries",
    "merge_all_results": "mind2web2.analysis.summaries",
}

__all__ = [
    "DualSemaphore",
    "evaluate_task",
    "generate_result_summary",
    "merge_all_results",
]

__getattr__ = late_names(__name__, _HOMES)
