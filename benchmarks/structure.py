"""How much of the package a reader meets: modules on a claim's way, at start-up, in a folder, in a chain."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

from measuring import title
from servers.judge_server import JudgeServer

import mind2web2
from mind2web2 import CacheFileSys

PACKAGE = Path(mind2web2.__file__).parent
REPOSITORY = PACKAGE.parent
MODULES = {
    ".".join(("mind2web2", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
# Modules of utils/ that eval scripts import names from.
NAMES_FOR_SCRIPTS = {"cache_filesys", "load_eval_script", "misc", "page_info_retrieval", "url_tools"}
URL = "https://www.example.org/page"
# Writes down which modules are loaded before it imports anything, and which run during one verification.
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
    # What threads open is seen as well.
    reads = []
    sys.addaudithook(lambda event, about: reads.append(str(about[0])) if event == "open" else None)
    second = evaluator.add_leaf("depth_again", "The depth again", root)
    await evaluator.verify("The lake is deeper than 70 m.", second, "{URL}")
    from_cache = [path for path in reads if "cache/agent/task" in path]
    figures = {{"before": before, "files": sorted(files), "reads": from_cache}}
    Path("figures.json").write_text(json.dumps(figures))
    return evaluator.get_summary()
"""


def one_evaluation() -> tuple[int, int, int]:
    """Return how many modules one verification runs through, how many a script finds loaded, and later reads.

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
        command = [sys.executable, str(REPOSITORY / "run_eval.py"), "--agent_name", "agent", "--no_isolate"]
        command += ["--sequential", "--judge_base_url", server.base_url]
        environment = {**os.environ, "OPENAI_API_KEY": "dummy"}
        subprocess.run(command, cwd=folder, check=True, capture_output=True, env=environment)
        figures = json.loads((folder / "figures.json").read_text(encoding="utf-8"))
    on_the_way = sum(str(path) in figures["files"] for path in MODULES.values())
    return on_the_way, len(figures["before"]), len(figures["reads"])


@cache
def imported_by(module: str) -> frozenset[str]:
    """Return the package's modules that a module imports when it is loaded."""
    found = set()
    for node in ast.parse(MODULES[module].read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            members = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys()
            found |= members or {node.module}
    return frozenset((found & MODULES.keys()) - {module})


@cache
def longest_chain(module: str) -> tuple[str, ...]:
    """Return the longest chain of imports that begins with a module."""
    return (module, *max((longest_chain(name) for name in imported_by(module)), key=len, default=()))


def main() -> None:
    """Print the figures."""
    chain = max((longest_chain(module) for module in MODULES), key=len)
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES.values())
    tests = sum(
        len(path.read_text(encoding="utf-8").splitlines()) for path in (REPOSITORY / "tests").rglob("*.py")
    )
    folders = Counter(
        path.parent
        for path in MODULES.values()
        if path.name != "__init__.py" and path.stem not in NAMES_FOR_SCRIPTS
    )
    on_the_way, before, reads = one_evaluation()
    title(f"modules that one verify on a cached page runs through: {on_the_way}")
    title(f"modules loaded before the first script starts: {before}")
    title(f"files read to judge a second claim on a cached page: {reads}")
    title(f"most modules in one folder, names for scripts aside: {max(folders.values())}")
    names = " > ".join(name.removeprefix("mind2web2.") for name in chain)
    title(f"longest import chain: {len(chain)} ({names})")
    title(f"Python lines of the package / of tests: {lines:,} / {tests:,}")
    title(f"modules: {len(MODULES)}")


if __name__ == "__main__":
    main()
