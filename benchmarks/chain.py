"""How many judgments in a row an answer waits for, without and with lookahead.

Ten scripts in the ways of the published ones (extractions, sequential roots, gates, loops) run against a
local judge with a fixed latency. The chain is the time from the first request to the last reply, divided by
the latency. About four of five claims hold.

    PYTHONPATH=tests uv run python benchmarks/chain.py [LATENCY_S]
"""

import contextlib
import io
import sys
import tempfile
import time
import zlib
from pathlib import Path

from measuring import title
from projects import AGENT, Project, block_in, messages_text, read_json
from script_checks import plausible
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
    "two_extractions": (
        "SEQUENTIAL",
        "    first = await ev.extract('The first', Item, 'first')\n"
        "    second = await ev.extract('The second', Item, 'second')\n"
        + _gated("{first.name}", 2)
        + _gated("{second.name} b", 2),
    ),
    "page_extraction": (
        "PARALLEL",
        "    item = await ev.extract('The item', Item)\n"
        "    page = await ev.extract('The year', Item, 'page', source=(item.urls or [PAGE + '1'])[0])\n"
        + _gated("{item.name} {page.year}", 3, strategy="sequential"),
    ),
}


def main() -> None:
    """Print a table."""
    latency_s = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    rows = {}
    for way in ("off", "gates"):
        for name, (strategy, body) in SCRIPTS.items():
            with tempfile.TemporaryDirectory() as folder:
                rows[way, name] = _one(
                    Path(folder), name, strategy, body, way, latency_s
                )
    title(
        f"{'script':24} {'links off':>10} {'gates':>6} {'requests off':>13} {'gates':>6}  same result"
    )
    for name in SCRIPTS:
        off, gates = rows["off", name], rows["gates", name]
        is_same = off[2] == gates[2]
        title(
            f"{name:24} {off[0]:10.1f} {gates[0]:6.1f} {off[1]:13} {gates[1]:6}  {is_same}"
        )
    requests = {
        way: sum(rows[way, name][1] for name in SCRIPTS) for way in ("off", "gates")
    }
    title(f"requests for nothing: {1 - requests['off'] / requests['gates']:.1%}")


def _one(folder: Path, name: str, strategy: str, body: str, way: str, latency_s: float):
    project = Project(folder)
    project.add_answer(
        "answer_1", "An answer [p](https://www.example.org/page/1).", name
    )
    project.add_raw_script(HEADER.replace("STRATEGY", strategy) + body + END, name)
    for number in range(8):
        project.cache(name).put_web(
            f"https://www.example.org/page/{number}", f"page {number}", None
        )
    moments: list[float] = []

    def reply(request):
        moments.append(time.monotonic())
        time.sleep(latency_s)
        moments.append(time.monotonic())
        claim = block_in(messages_text(request["messages"]), "claim")
        if claim is None:
            return plausible(request["response_format"]["json_schema"]["schema"])
        is_right = zlib.crc32(f"{claim} 4".encode()) % 5 != 0
        return {"reasoning": "scripted", "result": is_right, "quote": ""}

    with (
        JudgeServer(reply=reply) as server,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        evaluate_main(
            [
                *(
                    "--agent_name",
                    AGENT,
                    "--no_capture",
                    "--no_barred",
                    "--judge_base_url",
                    server.base_url,
                ),
                *("--lookahead", way),
            ]
        )
    [path] = project.result_paths(task=name)
    result = read_json(path)
    return (
        (max(moments) - min(moments)) / latency_s,
        len(moments) // 2,
        result["eval_breakdown"],
    )


if __name__ == "__main__":
    main()
