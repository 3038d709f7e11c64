"""Running tasks from Python, under the names that callers import."""

from mind2web2.judge.admission import DualSemaphore
from mind2web2.runs.summaries import generate_result_summary, merge_all_results
from mind2web2.runs.task import evaluate_task

__all__ = [
    "DualSemaphore",
    "evaluate_task",
    "generate_result_summary",
    "merge_all_results",
]
