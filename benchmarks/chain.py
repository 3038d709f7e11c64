"""How many judgments in a row, and how many batch jobs, an answer waits for, without and with lookahead.

Scripts in the ways of the published ones (extractions, sequential roots, gates, loops) run against a
local judge with a fixed latency. The chain is the time from the first request to the last reply, divided by
the latency. About four of five claims hold. Then each runs with --batch against a local batch server, which
counts the jobs, and several answers of each are judged at once, to count the requests of claims that gates
skip.

    PYTHONPATH=tests uv run python benchmarks/chain.py [LATENCY_S]
"""

import contextlib
import io
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from measuring import title
from projects import AGENT, Project, block_in, messages_text, read_json
from script_checks import plausible
from servers.batch_server import BatchServer
from servers.judge_server import JudgeServer

from mind2web2.cli import evaluate_main

HEADER = """\
from pydantic import BaseModel
from mind2web2 import AggregationStrategy, Evaluator

class Item(BaseModel):
    name: str | None = None
    year: int | None = None
    urls: list[str] = []

class Items(BaseModel):
    items: list[Item] = []

PAGE = "https://www.example.org/page/"

async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"):
    ev = Evaluator()
    root = ev.initialize(task_id="t", strategy=AggregationStrategy.STRATEGY, client=client, answer=answer,
                         task_description="T", global_cache=cache, global_semaphore=semaphore, logger=logger)
"""
END = "    return ev.get_summary()\n"


def _gated(
    name: str, checks: int, indent: str = "    ", strategy: str = "parallel"
) -> str:
    gate = f"ev.add_leaf(f'{name}_gate', 'gate', part, critical=True)"
    check = f"ev.add_leaf(f'{name}_{{k}}', 'check', part)"
    return (
        f"{indent}part = ev.add_{strategy}(f'{name}', 'part', root)\n"
        f"{indent}await ev.verify(f'Gate {name}', {gate}, PAGE + '1')\n"
        f"{indent}for k in range({checks}):\n"
        f"{indent}    await ev.verify(f'Check {name} {{k}}', {check}, PAGE + str(k))\n"
    )


SCRIPTS = {
    "sequential_root": ("SEQUENTIAL", "".join(_gated(f"s{n}", 2) for n in range(4))),
    "deep_sequence": ("SEQUENTIAL", _gated("d", 6, strategy="sequential")),
    "gates_in_parallel": ("PARALLEL", "".join(_gated(f"p{n}", 3) for n in range(3))),
    "extract_then_gates": (
        "PARALLEL",
        "    item = await ev.extract('The item', Item)\n"
        "    ev.add_custom_node(item.name, 'named', 'named', root)\n"
        + _gated("{item.name}", 4),
    ),
    "item_loop": (
        "PARALLEL",
        "    found = await ev.extract('All items', Items)\n"
        "    for n, item in enumerate(found.items):\n"
        + _gated("i{n}", 3, "        ", "sequential"),
    ),
    "chain_of_gates": (
        "PARALLEL",
        "    for n in range(5):\n"
        "        leaf = ev.add_leaf(f'g{n}', 'g', root, critical=True)\n"
        "        await ev.verify(f'Step {n}', leaf, PAGE + str(n))\n",
    ),
    "prerequisites": (
        "PARALLEL",
        "    before = None\n    for n in range(6):\n        leaf = ev.add_leaf(f'l{n}', 'l', root)\n"
        "        needs = [before] if before else None\n"
        "        await ev.verify(f'Link {n}', leaf, PAGE + str(n), extra_prerequisites=needs)\n"
        "        before = leaf\n",
    ),
    "sequence_of_sequences": (
        "SEQUENTIAL",
        "".join(_gated(f"q{n}", 3, strategy="sequential") for n in range(3)),
    ),
    "three_extractions": (
        "SEQUENTIAL",
        "    first = await ev.extract('The first', Item, 'first')\n"
        "    second = await ev.extract('The second', Item, 'second')\n"
        "    third = await ev.extract('The third', Item, 'third')\n"
        + _gated("{first.name}", 2)
        + _gated("{second.name} b", 2)
        + _gated("{third.name} c", 2),
    ),
    "five_extractions": (
        "PARALLEL",
        "".join(
            f"    part{n} = await ev.extract('Part {n}', Item, 'part{n}')\n"
            for n in range(5)
        )
        + "    ev.add_custom_info({'names': [part0.name, part1.name, part2.name]})\n"
        + "".join(_gated(f"{{part{n}.name}} {n}", 1) for n in range(5)),
    ),
    "thirteen_extractions": (
        "PARALLEL",
        "".join(
            f"    fact{n} = await ev.extract('Fact {n}', Item, 'fact{n}')\n"
            f"    leaf{n} = ev.add_leaf('fact{n}', 'fact', root)\n"
            for n in range(13)
        )
        + "".join(
            f"    await ev.verify(f'Fact {n} is {{fact{n}.name}}', leaf{n})\n"
            for n in range(13)
        ),
    ),
    "extractions_of_pages": (
        "PARALLEL",
        "    for n in range(3):\n"
        "        page = await ev.extract('The year', Item, 'year', source=PAGE + str(n))\n"
        "        other = await ev.extract('The name', Item, 'name', source=PAGE + str(n))\n"
        + _gated("{n} {page.year} {other.name}", 2, "        "),
    ),
    "page_extraction": (
        "PARALLEL",
        "    item = await ev.extract('The item', Item)\n"
        "    page = await ev.extract('The year', Item, 'page', source=(item.urls or [PAGE + '1'])[0])\n"
        + _gated("{item.name} {page.year}", 3, strategy="sequential"),
    ),
}


# Answers of each task whose requests are counted.
ANSWERS = 8


def main() -> None:
    """Print a table."""
    latency_s = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    rows = {(way, name): _one(name, way, latency_s) for way in WAYS for name in SCRIPTS}
    batches = {(way, name): _in_batches(name, way) for way in WAYS for name in SCRIPTS}
    title(
        f"{'script':24} {'links off':>10} {'gates':>6} {'jobs off':>10} {'gates':>6}  same result"
    )
    for name in SCRIPTS:
        off, gates = rows["off", name], rows["gates", name]
        jobs_off, jobs_gates = batches["off", name], batches["gates", name]
        is_same = off.trees == gates.trees == jobs_off.trees == jobs_gates.trees
        title(
            f"{name:24} {off.links:10.1f} {gates.links:6.1f}"
            f" {jobs_off.jobs:10} {jobs_gates.jobs:6}  {is_same}"
        )
    few = sum(rows["gates", name].links < 4.5 for name in SCRIPTS)
    title(f"at most 4 links with lookahead: {few} of {len(SCRIPTS)}")
    few = sum(batches["gates", name].jobs <= 4 for name in SCRIPTS)
    title(f"at most 4 jobs with lookahead: {few} of {len(SCRIPTS)}")
    counted = {way: _measured(SCRIPTS, way, 0, ANSWERS) for way in WAYS}
    off, gates = counted["off"], counted["gates"]
    title(
        f"{ANSWERS} answers each, of whose gates {off.passed_gates:.0%} pass:"
        f" {off.requests} requests, {gates.requests} with lookahead,"
        f" for nothing {1 - off.requests / gates.requests:.1%}, same result {off.trees == gates.trees}"
    )


WAYS = ("nothing", "values", "gates")
_OPTIONS = ("--agent_name", AGENT, "--no_capture", "--no_barred")


@dataclass(frozen=True)
class Measured:
    """What a run took."""

    links: float
    requests: int
    passed_gates: float
    trees: list[object]


@dataclass(frozen=True)
class InBatches:
    """What a run with ``--batch`` took."""

    jobs: int
    trees: list[object]


def _in_batches(name: str, way: str) -> InBatches:
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder))
        _add_task(project, name, 1)
        with (
            BatchServer(reply=_Judge(0).reply) as server,
            contextlib.chdir(folder),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            options = ("--batch", "--batch_poll", "0.01", "--judge_base_url")
            evaluate_main([*_OPTIONS, *options, server.base_url, "--ahead", way])
        return InBatches(len(server.jobs), _trees(project, [name], 1))


def _one(name: str, way: str, latency_s: float) -> Measured:
    return _measured([name], way, latency_s, 1)


def _measured(
    names: Iterable[str], way: str, latency_s: float, answers: int
) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder))
        for name in names:
            _add_task(project, name, answers)
        judge = _Judge(latency_s)
        with (
            JudgeServer(reply=judge.reply) as server,
            contextlib.chdir(folder),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            address = ("--judge_base_url", server.base_url)
            evaluate_main([*_OPTIONS, *address, "--ahead", way])
        return Measured(
            (max(judge.moments) - min(judge.moments)) / (latency_s or 1),
            len(judge.moments) // 2,
            sum(judge.gates.values()) / (len(judge.gates) or 1),
            _trees(project, names, answers),
        )


def _trees(project: Project, names: Iterable[str], answers: int) -> list[object]:
    paths = [
        project.result_paths(f"answer_{n}", name)[0]
        for name in names
        for n in range(answers)
    ]
    return [read_json(path)["eval_breakdown"] for path in paths]


def _add_task(project: Project, name: str, answers: int) -> None:
    strategy, body = SCRIPTS[name]
    for n in range(answers):
        text = f"Answer {n} [p](https://www.example.org/page/1)."
        project.add_answer(f"answer_{n}", text, name)
    project.add_raw_script(HEADER.replace("STRATEGY", strategy) + body + END, name)
    for number in range(8):
        address = f"https://www.example.org/page/{number}"
        project.cache(name).put_web(address, f"page {number}", None)


class _Judge:
    """Four of five claims hold, by a hash of claim and answer."""

    def __init__(self, latency_s: float) -> None:
        self.moments: list[float] = []
        self.gates: dict[str, bool] = {}
        self._latency_s = latency_s

    def reply(self, request: dict) -> dict:
        """Reply after the latency."""
        self.moments.append(time.monotonic())
        time.sleep(self._latency_s)
        self.moments.append(time.monotonic())
        text = messages_text(request["messages"])
        claim = block_in(text, "claim")
        if claim is None:
            return plausible(request["response_format"]["json_schema"]["schema"])
        question = f"{claim} {block_in(text, 'answer')}"
        is_right = zlib.crc32(question.encode()) % 5 != 0
        if claim.startswith(("Gate", "Step", "Link")):
            self.gates[question] = is_right
        return {"reasoning": "scripted", "result": is_right, "quote": ""}


if __name__ == "__main__":
    main()
