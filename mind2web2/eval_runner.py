"""Running tasks from Python, under the names that callers import."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mind2web2.scripts.limits import DualSemaphore

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
