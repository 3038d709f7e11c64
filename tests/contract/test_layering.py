"""Imports point one way: each layer sees only those before it, and no modules import each other."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import mind2web2

ROOT = Path(mind2web2.__file__).parent
# From the bottom up. A name stands for the module or the whole subpackage; siblings of a layer may
# see each other, as long as they do so without a cycle.
LAYERS = (
    "errors",
    "aggregation evidence evidence_verdicts verification_tree preconditions voting summary limits metrics "
    "results seals summaries written_tree "
    "result_facts score_grid intervals task_sums metric_intervals mixed_results verdict_counts "
    "agent_comparison "
    "prompts injection utils loop_guard rubric pace installation program_order awaiting_leaf "
    "pending_verdicts deferral capture script_clock script_inputs",
    "llm_client question_turns judgment store_cures judgments judgment_files judgment_reading api_tools",
    "failure_latch judge_ledger judge client_provider client_judge judge_access usage request_size spending "
    "batch_state batch_gathering batch_replies batch_courier batch_jobs batch_client "
    "reply_keeping service_answers recorded_judge answer_judge shared_captures prepared_page page_request "
    "page_content page_memory "
    "page_library pages_ahead questions quotations asking extraction "
    "claim_judging verification verification_batch eval_toolkit "
    "markdown_links discovery citations link_judge crawl_plan agent_cache crawl",
    "evaluator answer_cache provenance script_tasks script_run isolation selection staleness "
    "results_now "
    "answer_lock "
    "answer_evaluation eval_runner result_verification estimates",
    "cli",
    "__main__",
)
LAYER_OF = {name: number for number, names in enumerate(LAYERS) for name in names.split()}
MODULES = {
    ".".join(("mind2web2", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
}


def imported_by(module):
    """Return the package's modules that a module imports anywhere, also inside of functions."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    found = set()
    for node in _without_type_checking(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports by a relative path"
            # A name may be a module of its own: `from mind2web2.api_tools import tool_pdf`.
            found |= {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys()
            if not all(f"{node.module}.{alias.name}" in MODULES for alias in node.names):
                found.add(node.module)
    return {name for name in found if name in MODULES and name != module}


def _without_type_checking(tree):
    queue = [tree]
    while queue:
        node = queue.pop()
        yield node
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            queue += node.orelse
        else:
            queue += ast.iter_child_nodes(node)


def layer(module):
    """Return the number of a module's layer."""
    return LAYER_OF[module.split(".")[1]]


@pytest.mark.parametrize("module", [module for module in MODULES if module != "mind2web2"])
def test_modules_see_only_what_is_below(module):
    """A module that outgrows its layer, or is new, has to find its place in the list."""
    assert module.split(".")[1] in LAYER_OF, f"{module} is in no layer yet"
    below = imported_by(module) - {"mind2web2"}
    assert {name for name in below if layer(name) > layer(module)} == set()


def test_no_modules_import_each_other():
    """Not by way of others either: the order below exists."""
    graph = {module: imported_by(module) for module in MODULES}
    order = list(TopologicalSorter(graph).static_order())
    assert set(order) == set(MODULES)


def test_every_layer_is_there():
    """The list names nothing that is gone."""
    assert {module.split(".")[1] for module in MODULES if "." in module} == LAYER_OF.keys()
