"""A small benchmark that a scripted judge has judged, and changes planted in it.

Each task has four facts, each on a page of its own. An answer states a value for each, and a judge
passes a claim if the cited page has its value, but for the claims that it is wrong about.
"""

import random
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from projects import AGENT, Project, block_in, call, claim_in, overridden
from servers.judge_server import JudgeServer, prompt_text

from mind2web2.cli import evaluate_main
from mind2web2.pages.cache import CacheFileSys

FACTS = ("depth", "length", "width", "height")
SCRIPT = """\
import re
from mind2web2 import Evaluator

ROUNDING = {rounding!r}


async def evaluate_answer(
    client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"
):
    evaluator = Evaluator()
    root = evaluator.initialize(
        task_id={task!r}, agent_name=agent_name, answer_name=answer_name, client=client,
        answer=answer, global_cache=cache, global_semaphore=semaphore, logger=logger,
        default_model=model, strategy={strategy!r},
    )
    facts = dict(re.findall(r"The (\\w+) is (\\d+) m", answer))
    for name in {facts!r}:
        leaf = evaluator.add_leaf(f"{prefix}{{name}}", name, root, critical=name == {gate!r})
        await evaluator.verify(
            claim=f"The {{name}} is {{facts[name]}} m{{ROUNDING.get(name, '')}}.", node=leaf,
            sources=f"https://{task}.example/{{name}}",
        )
    return evaluator.get_summary()
"""


@dataclass
class ScriptedJudge:
    """Passes a claim whose value stands on the page; each model has errors of its own.

    Attributes:
        wrong: the claims that a model is wrong about, by model.
        asked: the claims of all requests.
    """

    wrong: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def __call__(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a verdict."""
        text = prompt_text(body)
        claim, url = claim_in(text) or "", block_in(text, "page address") or ""
        self.asked.append(claim)
        # The claims of an answer are all different, and the claim itself is not the page.
        page = block_in(text, "page") or ""
        value = re.search(r"(\d+) m", claim)
        holds = value is not None and f" {value[0]}" in page
        place = (url.split("/")[2].split(".")[0], claim.split()[1])
        return {
            "reasoning": "read",
            "result": holds ^ (place in self.wrong.get(body["model"], ())),
        }


@dataclass
class Planted:
    """A project with the agent ``bot``, and a second agent ``other`` that begins as its copy."""

    project: Project
    judge: ScriptedJudge
    tasks: list[str]

    @property
    def root(self) -> Path:
        """Return the project's folder."""
        return self.project.root

    def evaluate(self, agent: str, *words: str) -> None:
        """Evaluate an agent with ``judge-1`` and the first scripts, if no word says otherwise."""
        own = overridden(("--judge_model", "judge-1", "--eval_version", "v1"), words)
        run = call(evaluate_main, agent, "--no_capture", *own)
        assert run.returncode == 0, run.stderr

    def script(self, task: str, version: str, **changes: Any) -> None:
        """Write a task's script."""
        parts = {
            "task": task,
            "strategy": "parallel",
            "facts": FACTS,
            "prefix": "",
            "gate": None,
            "rounding": {},
        }
        self.project.add_raw_script(SCRIPT.format(**parts | changes), task, version)

    def page(self, agent: str, task: str, name: str, value: int) -> None:
        """Store a page with another value."""
        cache = CacheFileSys(self.root / "cache" / agent / task)
        cache.put_web(f"https://{task}.example/{name}", f"Its {name} is {value} m today.", None)

    def answer(self, agent: str, task: str, values: dict[str, int]) -> None:
        """Write an agent's answer."""
        text = " ".join(f"The {name} is {value} m." for name, value in values.items())
        folder = self.root / "answers" / agent / task
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "answer_1.md").write_text(text)


def values_of(task: str) -> dict[str, int]:
    """Return the true values of a task's facts."""
    draws = random.Random(task)
    return {name: draws.randint(100, 999) for name in FACTS}


@contextmanager
def planted(
    root: Path, setenv: Callable[[str, str], object], tasks: Iterable[str]
) -> Iterator[Planted]:
    """Evaluate the agent ``bot`` with ``judge-1``; the caller stands in the folder."""
    judge = ScriptedJudge()
    found = Planted(Project(root), judge, list(tasks))
    for number, task in enumerate(found.tasks):
        values = values_of(task)
        for name, value in values.items():
            found.page(AGENT, task, name, value)
        # One fact is wrong, another one in each task.
        values[FACTS[number % 4]] += 1
        found.answer(AGENT, task, values)
        found.script(task, "v1")
    with JudgeServer(reply=judge) as server:
        setenv("OPENAI_API_KEY", "dummy")
        setenv("OPENAI_BASE_URL", server.base_url)
        found.evaluate(AGENT)
        yield found


def copy_agent(found: Planted) -> None:
    """Make ``other`` a copy of ``bot``, without results."""
    for folder in ("answers", "cache"):
        shutil.copytree(found.root / folder / AGENT, found.root / folder / "other")


def plant(found: Planted, cause: str, draws: random.Random) -> list[str]:
    """Plant a change that moves the score of ``other``; return the options of its evaluation."""
    task, name = draws.choice(found.tasks), draws.choice(FACTS)
    if cause == "rubric":
        shutil.copytree(found.root / "eval_scripts/v1", found.root / "eval_scripts/v2")
        edits = [{"facts": FACTS[1:]}, {"strategy": "sequential"}, {"gate": name}]
        for each in found.tasks:
            found.script(each, "v2", **draws.choice(edits))
        return ["--eval_version", "v2"]
    if cause == "pages":
        stated = (found.root / f"answers/other/{task}/answer_1.md").read_text()
        value = int(re.search(rf"The {name} is (\d+) m", stated)[1])
        is_true = values_of(task)[name] == value
        found.page("other", task, name, value + 7 if is_true else value)
    if cause == "answers":
        values = values_of(task)
        wrong = FACTS[found.tasks.index(task) % 4]
        values[wrong] += 1
        values[name] += -1 if name == wrong else 5
        found.answer("other", task, values)
    if cause == "judge":
        found.judge.wrong["judge-2"] = {(task, name)}
        return ["--judge_model", "judge-2"]
    return []
