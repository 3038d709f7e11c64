"""Imports point one way: each room sees only the rooms before it."""

import ast
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import mind2web2

PACKAGE = Path(mind2web2.__file__).parent
# From the bottom up; docs/architecture.md describes them.
ROOMS = (
    "errors",
    "utils",
    "urls",
    "rubric",
    "statistics",
    "prompts",
    "llm_client",
    "capture",
    "judge",
    "pages",
    "api_tools",
    "verification",
    "evaluator",
    "scripts",
    "results",
    "analysis",
    "runs",
    "scoring",
    "viewer",
    "benchmark",
    "bridges",
    "hooks",
    "cli",
    "plugin",
    "__main__",
)
# Names that eval scripts import; the package itself imports the modules behind them.
PUBLISHED = {
    "mind2web2.verification_tree",
    "mind2web2.eval_toolkit",
    "mind2web2.eval_runner",
    "mind2web2.utils.cache_filesys",
    "mind2web2.utils.url_tools",
    "mind2web2.utils.page_info_retrieval",
    "mind2web2.utils.load_eval_script",
    "mind2web2.utils.misc",
}
# In the longest chain of imports, those inside of functions as well; it is 18 today.
MAX_LEVELS = 20
MODULES = {
    ".".join(("mind2web2", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


@cache
def imported_by(module):
    """Return the package's modules that a module imports anywhere."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports by a relative path"
            # A name may be a module of its own: `from mind2web2.api_tools import tool_pdf`.
            members = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys()
            found |= members
            if len(members) < len(node.names):
                found.add(node.module)
    return (found & MODULES.keys()) - {module, "mind2web2"}


def loaded_on_demand(module):
    """Return the package's modules that a module loads by their names."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    # "module:function", as parsers name what runs their commands.
    modules = {text.partition(":")[0] for text in texts if isinstance(text, str)}
    return (modules & MODULES.keys()) - PUBLISHED - {module, "mind2web2"}


def room(module):
    """Return the position of a module's room."""
    return ROOMS.index(module.split(".")[1])


def test_modules_see_only_rooms_below():
    """No modules import each other, in a circle or for types.

    The list names the rooms that are there.
    """
    graph = {module: imported_by(module) | loaded_on_demand(module) for module in MODULES}
    assert set(TopologicalSorter(graph).static_order()) == set(MODULES)
    own = MODULES.keys() - PUBLISHED - {"mind2web2"}
    assert {module.split(".")[1] for module in own} == set(ROOMS)
    upwards = {
        (module, name)
        for module in own
        for name in graph[module] - PUBLISHED
        if room(name) > room(module)
    }
    assert upwards == set()
    published = {name for module in own for name in graph[module] & PUBLISHED}
    assert published <= {"mind2web2.utils.misc"}, "published names are for scripts"


def test_a_chain_of_imports_stays_short():
    graph = {module: imported_by(module) for module in MODULES}
    levels = {}
    for module in TopologicalSorter(graph).static_order():
        below = [levels[name] for name in graph[module]]
        levels[module] = 1 + max(below, default=0)
    longest = max(levels, key=levels.get)
    assert levels[longest] <= MAX_LEVELS, longest


def test_every_module_can_be_imported():
    """Every folder has an ``__init__.py``, and no module of the same name beside it."""
    folders = {path.parent for path in MODULES.values()}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []
    assert [folder for folder in folders if folder.with_suffix(".py").exists()] == []


def test_own_modules_are_imported_at_the_top():
    """An import elsewhere hides the order; parsers name the modules that run their commands."""
    found = Counter()
    for module, path in MODULES.items():
        inside = set()
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                inside |= set(ast.walk(function))
        found[module] = sum(imports_own_modules(node) for node in inside)
    assert +found == Counter()


def imports_own_modules(node):
    """Return whether a statement imports a module of the package."""
    if isinstance(node, ast.ImportFrom):
        return node.module.split(".")[0] == "mind2web2"
    return isinstance(node, ast.Import) and any(
        alias.name.split(".")[0] == "mind2web2" for alias in node.names
    )
