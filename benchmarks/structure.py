"""Count how much of the package a reader meets, and how plain it is."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from measuring import title
from servers.judge_server import JudgeServer

import mind2web2
from mind2web2 import CacheFileSys

PACKAGE = Path(mind2web2.__file__).parent
REPOSITORY = PACKAGE.parent
MODULES = {
    ".".join(("mind2web2", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
# Modules of utils/ that eval scripts import names from.
NAMES_FOR_SCRIPTS = {
    "cache_filesys",
    "load_eval_script",
    "misc",
    "page_info_retrieval",
    "url_tools",
}
DICTIONARIES = {"dict", "Mapping", "MutableMapping"}
ROOMS_THAT_READ_RESULTS = {
    "benchmark",
    "cli",
    "cluster",
    "judge_check",
    "runs",
    "scoring",
    "statistics",
    "viewer",
}
NO_RESULTS = {
    "asked",
    "body",
    "environ",
    "given",
    "headers",
    "query_params",
    "settings",
}
JUDGE_WITH_A_STORE = "CachingJudge"
PROBED = ("browser", "cache", "client", "judge", "library", "provider", "semaphore")
URL = "https://www.example.org/page"
# Writes down which modules are loaded before it imports anything, and which run during one
# verification.
SCRIPT = f"""
import json, sys
from pathlib import Path
before = [name for name in sys.modules if name.split(".")[0] == "mind2web2"]
from mind2web2 import Evaluator
async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"):
    evaluator = Evaluator()
    root = evaluator.initialize(task_id="t", client=client, answer=answer, global_cache=cache, logger=logger)
    leaf = evaluator.add_leaf("depth", "The depth", root)
    files = set()
    sys.setprofile(lambda frame, event, argument: files.add(frame.f_code.co_filename))
    try:
        await evaluator.verify("The lake is 80 m deep.", leaf, "{URL}")
    finally:
        sys.setprofile(None)
    second = evaluator.add_leaf("depth_again", "The depth again", root)
    await evaluator.verify("The lake is deeper than 70 m.", second, "{URL}")
    figures = {{"before": before, "files": sorted(files)}}
    Path("script_figures.json").write_text(json.dumps(figures))
    return evaluator.get_summary()
"""
# Writes down which modules of the run work on the first question, and which files it reads for the
# second.
COMMAND = """
import json, sys
from pathlib import Path
from mind2web2.cli import evaluate_main
from mind2web2.scripts.isolation.service import RunAnswers
files, reads, count = set(), [], 0
usual = RunAnswers.reply
async def watched(self, question, check):
    global count
    count += 1
    if count == 1:
        sys.setprofile(lambda frame, event, argument: files.add(frame.f_code.co_filename))
    else:
        sys.addaudithook(lambda event, about: reads.append(str(about[0])) if event == "open" else None)
    try:
        return await usual(self, question, check)
    finally:
        sys.setprofile(None)
RunAnswers.reply = watched
status = evaluate_main(sys.argv[1:])
from_cache = [path for path in reads if "cache/agent/task" in path]
Path("run_figures.json").write_text(json.dumps({"files": sorted(files), "reads": from_cache}))
sys.exit(status)
"""


def one_evaluation() -> tuple[int, int, int]:
    """Count the modules of one verification, the modules loaded before a script, and later reads.

    Reads are of files of the page cache, to judge a second claim on the same page.
    """
    verdict = {"reasoning": "stated", "result": True}
    with tempfile.TemporaryDirectory() as name, JudgeServer(verdict) as server:
        folder = Path(name)
        for path, text in (
            ("answers/agent/task/answer_1.md", "The lake is 80 m deep."),
            ("eval_scripts/dev/task.py", SCRIPT),
        ):
            (folder / path).parent.mkdir(parents=True)
            (folder / path).write_text(text, encoding="utf-8")
        CacheFileSys(folder / "cache/agent/task").put_web(URL, "The lake is 80 m deep.", None)
        command = [sys.executable, "-c", COMMAND, "--agent_name", "agent"]
        command += ["--max_llm_requests", "1", "--judge_base_url"]
        command += [server.base_url]
        environment = {
            **os.environ,
            "OPENAI_API_KEY": "dummy",
            "PYTHONPATH": str(REPOSITORY / "tests"),
        }
        subprocess.run(command, cwd=folder, check=True, capture_output=True, env=environment)
        of_script, of_run = (
            json.loads((folder / f"{side}_figures.json").read_text(encoding="utf-8"))
            for side in ("script", "run")
        )
    seen = {*of_script["files"], *of_run["files"]}
    on_the_way = sum(str(path) in seen for path in MODULES.values())
    return on_the_way, len(of_script["before"]), len(of_run["reads"])


@cache
def tree_of(module: str) -> ast.Module:
    """Return a module's syntax tree."""
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def is_command(module: str) -> bool:
    """Return whether a module belongs to the commands, or is run by the parser of a plugin's."""
    return module.split(".")[1:2] == ["cli"] or module in run_by_plugins()


@cache
def run_by_plugins() -> frozenset[str]:
    """Return the modules that the parsers of plugins' commands name."""
    parsers = [module for module in MODULES if is_of_plugin(module)]
    return frozenset().union(*map(loaded_by_name, parsers))


def functions_of(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return all functions of a tree, those inside of classes and of other functions as well."""
    return [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def names_imported(node: ast.stmt) -> set[str]:
    """Return the modules that a statement may import.

    ``from a import b`` may mean the module ``a.b``.
    """
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.module is not None:
        members = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys()
        return members or {node.module}
    return set()


@cache
def imported_at_load(module: str) -> frozenset[str]:
    """Return the package's modules that a module imports when it is loaded."""
    found: set[str] = set()
    for node in tree_of(module).body:
        found |= names_imported(node)
    return frozenset((found & MODULES.keys()) - {module})


@cache
def imported_anywhere(module: str) -> frozenset[str]:
    """Return the package's modules that a module imports, also inside of functions."""
    found: set[str] = set()
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.stmt):
            found |= names_imported(node)
    return frozenset((found & MODULES.keys()) - {module, "mind2web2"})


@cache
def longest_chain(module: str, imported_by: Callable[[str], frozenset[str]]) -> tuple[str, ...]:
    """Return the longest chain of imports that begins with a module."""
    chains = (longest_chain(name, imported_by) for name in imported_by(module))
    return (module, *max(chains, key=len, default=()))


def longest_of_all(imported_by: Callable[[str], frozenset[str]]) -> tuple[str, ...]:
    """Return the longest chain of imports of the package."""
    return max((longest_chain(module, imported_by) for module in MODULES), key=len)


@dataclass(frozen=True)
class Place:
    """A line of the package that counts."""

    module: str
    line: int


def imports_in_functions() -> tuple[list[Place], list[Place]]:
    """Return the imports inside of functions, and those of own modules outside of commands.

    Counted are statements. Imports for types only (``if TYPE_CHECKING``) stand outside of
    functions.
    """
    every, own = [], []
    for module in MODULES:
        inside = {node for function in functions_of(tree_of(module)) for node in ast.walk(function)}
        for node in inside:
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            place = Place(module, node.lineno)
            every.append(place)
            is_own = any(name.split(".")[0] == "mind2web2" for name in names_imported(node))
            if is_own and not is_command(module):
                own.append(place)
    return every, own


def lines_with(word: str) -> list[Place]:
    """Return the lines that contain a word, comments and docstrings as well."""
    whole_word = re.compile(rf"\b{word}\b")
    found = []
    for module, path in MODULES.items():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if whole_word.search(line):
                found.append(Place(module, number))
    return found


def annotations_of(tree: ast.AST) -> list[ast.expr]:
    """Return the annotations of parameters, results, variables and fields."""
    found: list[ast.expr | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign):
            found.append(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(node.returns)
    return [annotation for annotation in found if annotation is not None]


def untyped_dicts() -> list[Place]:
    """Return the annotations' dictionaries that say nothing of their content.

    That is ``dict``, ``Mapping`` or ``MutableMapping`` bare or with values of type ``Any`` or
    ``object``; each counts, also two in one annotation. Aliases and casts do not count.
    """
    found = []
    for module in MODULES:
        for annotation in annotations_of(tree_of(module)):
            nodes = list(ast.walk(annotation))
            typed = {
                id(node.value)
                for node in nodes
                if isinstance(node, ast.Subscript)
                and isinstance(node.slice, ast.Tuple)
                and ast.unparse(node.slice.elts[-1]) not in {"Any", "object"}
            }
            for node in nodes:
                if isinstance(node, ast.Name) and node.id in DICTIONARIES and id(node) not in typed:
                    found.append(Place(module, node.lineno))
    return found


def gets_on_results() -> list[Place]:
    """Return the reads by ``.get("field"`` in the rooms that read results.

    Every such call with a literal text counts, except on the variables in ``NO_RESULTS``, which
    hold headers, environment, options and requests.
    """
    found = []
    for module in MODULES:
        if module.split(".")[1:2] == [] or module.split(".")[1] not in ROOMS_THAT_READ_RESULTS:
            continue
        for call in calls_of(tree_of(module)):
            if not isinstance(call.func, ast.Attribute) or call.func.attr != "get" or not call.args:
                continue
            key, owner = call.args[0], last_name(call.func.value)
            is_text = isinstance(key, ast.Constant) and isinstance(key.value, str)
            if is_text and owner not in NO_RESULTS:
                found.append(Place(module, call.lineno))
    return found


def calls_of(tree: ast.AST) -> list[ast.Call]:
    """Return all calls of a tree."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def last_name(node: ast.expr) -> str:
    """Return the last name of an expression: ``environ`` of ``os.environ``."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def calls_to(*names: str) -> list[Place]:
    """Return the calls of functions or classes with one of the names."""
    found = []
    for module in MODULES:
        for call in calls_of(tree_of(module)):
            if last_name(call.func) in names:
                found.append(Place(module, call.lineno))
    return found


def assembling_modules() -> set[str]:
    """Return the modules that assemble a run: those that make a judge with a store."""
    return {place.module for place in calls_to(JUDGE_WITH_A_STORE)}


def probes() -> list[Place]:
    """Return the probes of caches, clients, browsers and the like by ``getattr``.

    Such an object is known by the name of the variable or attribute that holds it. Counted is
    ``getattr`` with a literal name and ``hasattr``: a loop over the names of fields asks for what
    it knows to be there.
    """
    found = []
    for module in MODULES:
        for call in calls_of(tree_of(module)):
            if not isinstance(call.func, ast.Name) or call.func.id not in {
                "getattr",
                "hasattr",
            }:
                continue
            is_literal = isinstance(call.args[1], ast.Constant)
            if is_literal and any(word in last_name(call.args[0]) for word in PROBED):
                found.append(Place(module, call.lineno))
    return found


def lines_of_code(module: str) -> int:
    """Return the number of lines that hold code: no blank lines, comments or docstrings."""
    documented: set[int] = set()
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if ast.get_docstring(node, clean=False) else None
            if first is not None:
                documented |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    count = 0
    for number, line in enumerate(
        MODULES[module].read_text(encoding="utf-8").splitlines(), start=1
    ):
        text = line.strip()
        if text and not text.startswith("#") and number not in documented:
            count += 1
    return count


def nodes_of(module: str) -> int:
    """Return the number of syntax-tree nodes of a module."""
    return sum(1 for _ in ast.walk(tree_of(module)))


def where(places: Iterable[Place]) -> None:
    """Print how many places each module has, most first."""
    counts = Counter(place.module.removeprefix("mind2web2.") for place in places)
    title(f"    {', '.join(f'{module} {count}' for module, count in counts.most_common())}")


def print_way() -> None:
    """Print how many modules a claim meets."""
    on_the_way, before, reads = one_evaluation()
    title(f"modules that one verify on a cached page runs through: {on_the_way}")
    title(f"modules loaded before the first script starts: {before}")
    title(f"files read to judge a second claim on a cached page: {reads}")


def print_imports() -> None:
    """Print how deep the imports are, and which are inside of functions."""
    for what, imported_by in (
        ("when loaded", imported_at_load),
        ("all imports", imported_anywhere),
    ):
        chain = longest_of_all(imported_by)
        names = " > ".join(name.removeprefix("mind2web2.") for name in chain)
        title(f"import levels, {what}: {len(chain)} ({names})")
    every, own = imports_in_functions()
    title(
        f"imports inside of functions: {len(every)}, of own modules outside of commands: "
        f"{len(own)} (aim 0)"
    )
    where(own)


def print_types() -> None:
    """Print where settings and results are untyped."""
    for what, places, aim in (
        ("lines with Namespace", lines_with("Namespace"), 40),
        ("dictionaries without types in annotations", untyped_dicts(), 120),
        (".get on results", gets_on_results(), 0),
        ("probes of caches and clients by getattr", probes(), 5),
        ("context variables", calls_to("ContextVar"), 5),
    ):
        title(f"{what}: {len(places)} (aim {aim})")
        where(places)
    outside = {place.module for place in lines_with("Namespace") if not is_command(place.module)}
    title(f"modules with Namespace that are no commands: {len(outside)} (aim 0)")
    assembling = assembling_modules()
    names = ", ".join(sorted(assembling))
    title(f"modules that assemble a run: {len(assembling)} (aim 1): {names}")


# The rooms that run scripts in passes; before, they had 63,300 nodes.
ENGINE = ("scheduling", "scripts", "verification", "evaluator")


def print_engine() -> None:
    """Print the size of what runs scripts."""
    nodes = sum(
        nodes_of(module)
        for module in MODULES
        if module.split(".")[1:2] in [[room] for room in ENGINE]
    )
    title(f"syntax-tree nodes of scripts, verification and evaluator: {nodes:,}")


def print_size() -> None:
    """Print how much code there is, and how dense its lines are."""
    print_engine()
    folders = Counter(
        path.parent
        for path in MODULES.values()
        if path.name != "__init__.py" and path.stem not in NAMES_FOR_SCRIPTS
    )
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES.values())
    tests = sum(
        len(path.read_text(encoding="utf-8").splitlines())
        for path in (REPOSITORY / "tests").rglob("*.py")
    )
    code = {module: lines_of_code(module) for module in MODULES}
    nodes = {module: nodes_of(module) for module in MODULES}
    density = sum(nodes.values()) / sum(code.values())
    title(f"syntax-tree nodes: {sum(nodes.values()):,} (aim 323,000)")
    title(f"nodes per line of code: {density:.2f} (aim 7.5)")
    # The modules that would gain most if their lines were as plain as the aim.
    surplus = {module: nodes[module] / 7.5 - code[module] for module in MODULES}
    dense = sorted(MODULES, key=lambda module: surplus[module], reverse=True)[:12]
    names = ", ".join(
        f"{module.removeprefix('mind2web2.')} {surplus[module]:.0f}" for module in dense
    )
    title(f"    lines too few: {names}")
    title(f"Python lines of the package / of tests: {lines:,} / {tests:,}")
    title(
        f"modules: {len(MODULES)}; most in one folder, names for scripts aside: "
        f"{max(folders.values())}"
    )


# Where each way into the package begins, and how many syntax-tree nodes it may reach by imports.
WAYS_IN = {
    "evaluate": (("mind2web2.cli.evaluate", "mind2web2.cli.evaluate_run"), 200_000),
    "Scorer": (("mind2web2.scoring.scorer",), 130_000),
    "one answer's evaluation": (("mind2web2.runs.answer",), 110_000),
    "a script's process": (("mind2web2.scripts.isolation.worker",), 60_000),
}
# A feature touches a module that has one of its words as a name, or as a part of one.
FEATURES = {
    "two judges": r"cascade|first_judge|first_model|first_endpoint|is_first",
    "batch": r"batch",
    "storage": r"mirror|publish|bucket|object_store|working_cop",
    "votes": r"^votes$|vote_rule|num_trials",
    "reuse": r"reuse|freshness|up_to_date",
}
MAX_MODULES_OF_A_FEATURE = 15


def is_of_plugin(module: str) -> bool:
    """Return whether a module belongs to a plugin."""
    return module.split(".")[1:2] == ["plugins"]


def loaded_by_name(module: str) -> set[str]:
    """Return the modules that a module loads by their names, as a command does."""
    texts: set[str] = set()
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Call) and last_name(node.func) == "import_module":
            texts |= {each.value for each in node.args if isinstance(each, ast.Constant)}
        elif isinstance(node, ast.keyword) and node.arg == "run":
            texts |= {node.value.value} if isinstance(node.value, ast.Constant) else set()
        elif isinstance(node, ast.Assign) and is_named_module(node):
            texts |= {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
    return (texts & MODULES.keys()) - {"mind2web2"}


def is_named_module(node: ast.Assign) -> bool:
    """Return whether a constant names a module to load."""
    return ast.unparse(node.targets[0]).endswith("_MODULE")


def reached_from(starts: Iterable[str]) -> set[str]:
    """Return the modules that can be reached by imports or by name."""
    reached: set[str] = set()
    waiting = list(starts)
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting += imported_anywhere(module) | loaded_by_name(module)
    return reached


def names_in(module: str) -> set[str]:
    """Return all names that a module defines or uses."""
    found = set()
    for node in ast.walk(tree_of(module)):
        for field in ("id", "attr", "name", "arg"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                found.add(value)
    return found


def print_reach() -> None:
    """Print how much each way into the package reaches, and how far each feature spreads."""
    nodes = {module: nodes_of(module) for module in MODULES}
    for name, (starts, aim) in WAYS_IN.items():
        reached = reached_from(starts)
        size = sum(nodes[module] for module in reached)
        title(f"{name} reaches {size:,} nodes in {len(reached)} modules (aim {aim:,})")
    plugins = sum(nodes[module] for module in MODULES if is_of_plugin(module))
    title(f"nodes of the core: {sum(nodes.values()) - plugins:,} (aim 300,000)")
    title(f"nodes of plugins: {plugins:,} (aim 60,000)")
    core = [module for module in MODULES if not is_of_plugin(module)]
    for feature, words in FEATURES.items():
        touched = [
            module
            for module in core
            if any(re.search(words, name, re.IGNORECASE) for name in names_in(module))
        ]
        aim = MAX_MODULES_OF_A_FEATURE
        title(f"modules of the core that {feature} touches: {len(touched)} (aim {aim})")
    readers = {module.split(".")[1] for module in core if "RunSettings" in names_in(module)}
    title(f"rooms that read RunSettings: {len(readers)} (aim 12)")


def main() -> None:
    """Print the figures."""
    print_reach()
    print_way()
    print_imports()
    print_types()
    print_size()


if __name__ == "__main__":
    main()
