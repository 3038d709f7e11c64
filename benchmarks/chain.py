"""Count replies in a row and requests for nothing with each ``--ahead``.

Scripts in the ways of the published ones (extractions, sequential roots, gates, loops) are answered
by a policy: about four of five claims hold, by a hash of claim and answer. A pass follows when all
questions of the last one are answered, so that the links are the passes less one. A claim counts as
two requests.

    PYTHONPATH=tests uv run python benchmarks/chain.py [ANSWERS]
"""

import asyncio
import json
import sys
import tempfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measuring import title
from passes_by_policy import PolicyResult, result_by_policy
from script_checks import plausible

from mind2web2.scripts.isolation.messages import Ahead, ScriptCall, SentRequest, SentTemplate
from mind2web2.scripts.isolation.rpc import Question
from mind2web2.utils.files import file_sha256
from mind2web2.verification.run_questions import AskedClaim, AskedForm

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


def _gated(name: str, checks: int, indent: str = "    ", strategy: str = "parallel") -> str:
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
        "    ev.add_custom_node(item.name, 'named', 'named', root)\n" + _gated("{item.name}", 4),
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
        "    before = None\n    for n in range(6):\n        leaf = ev.add_leaf(f'l{n}', 'l', "
        "root)\n"
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
        "".join(f"    part{n} = await ev.extract('Part {n}', Item, 'part{n}')\n" for n in range(5))
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
            f"    await ev.verify(f'Fact {n} is {{fact{n}.name}}', leaf{n})\n" for n in range(13)
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
        "    page = await ev.extract('The year', Item, 'page', source=(item.urls or [PAGE + "
        "'1'])[0])\n" + _gated("{item.name} {page.year}", 3, strategy="sequential"),
    ),
    # Extractions whose results are read at once, in loops, helpers and other forms.
    "extractions_in_a_loop": (
        "PARALLEL",
        "    first = await ev.extract('All', Items)\n    things = []\n"
        "    for item in first.items[:3]:\n"
        + "".join(
            f"        {name} = await ev.extract(f'{name} of {{item.name}}', Item, '{name}')\n"
            for name in "abcd"
        )
        + "        things.append(Item(name=f'{a.name} {b.name}', year=c.year, urls=d.urls))\n"
        "    for n, thing in enumerate(things):\n" + _gated("{n} {thing.name}", 2, "        "),
    ),
    "nested_loops": (
        "PARALLEL",
        "    first = await ev.extract('All', Items)\n"
        "    for n, item in enumerate(first.items):\n"
        "        inner = await ev.extract(f'Parts of {item.name}', Items, 'parts')\n"
        "        for m, each in enumerate(inner.items):\n"
        "            more = await ev.extract(f'About {each.name}', Item, 'about')\n"
        "            leaf = ev.add_leaf(f'l{n}_{m}', 'd', root)\n"
        "            await ev.verify(f'{n} {m} {more.name}', leaf, PAGE + str(m))\n",
    ),
    "comprehension": (
        "PARALLEL",
        "    first = await ev.extract('All', Items)\n"
        "    found = [(await ev.extract(f'Of {i.name}', Item, 'i')).name for i in first.items]\n"
        "    for n, name in enumerate(found):\n" + _gated("{n} {name}", 2, "        "),
    ),
    "gathered_helpers": (
        "PARALLEL",
        "    import asyncio\n"
        "    async def one(n, item):\n"
        "        more = await ev.extract(f'Of {item.name}', Item, 'i')\n"
        "        part = ev.add_parallel(f'{n}', 'p', root)\n"
        "        gate = ev.add_leaf(f'{n}_gate', 'g', part, critical=True)\n"
        "        await ev.verify(f'Gate {n} {more.name}', gate, PAGE + '1')\n"
        "        await ev.verify(f'Check {n} {more.year}', ev.add_leaf(f'{n}_c', 'c', part))\n"
        "    first = await ev.extract('All', Items)\n"
        "    await asyncio.gather(*(one(n, item) for n, item in enumerate(first.items)))\n",
    ),
    "padded_list": (
        "PARALLEL",
        "    first = await ev.extract('All', Items)\n    items = list(first.items)\n"
        "    while len(items) < 4:\n        items.append(Item())\n"
        "    for n, item in enumerate(items):\n"
        "        ev.add_custom_node(item.name, f'given{n}', 'given', root, critical=False)\n"
        "        await ev.verify(f'Item {n} {item.name}', ev.add_leaf(f'l{n}', 'l', root), "
        "item.urls)\n",
    ),
    "helper_that_returns": (
        "PARALLEL",
        "    async def item_of(name):\n        return await ev.extract(f'Of {name}', Item, name)\n"
        "    for n in range(4):\n        item = await item_of(f'thing {n}')\n"
        + _gated("{n} {item.name}", 2, "        "),
    ),
    "class_with_state": (
        "PARALLEL",
        "    class Checks:\n        def __init__(self):\n            self.names = []\n"
        "        async def add(self, n):\n"
        "            item = await ev.extract(f'Part {n}', Item, 'part')\n"
        "            self.names.append(item.name or '')\n"
        "            leaf = ev.add_leaf(f'l{n}', 'l', root)\n"
        "            await ev.verify(f'{n} {self.names[-1]}', leaf, PAGE + str(n))\n"
        "    checks = Checks()\n    for n in range(5):\n        await checks.add(n)\n"
        "    ev.add_custom_info({'names': checks.names})\n",
    ),
    "critical_siblings": (
        "PARALLEL",
        "    first = await ev.extract('All', Items)\n"
        "    for n, item in enumerate(first.items):\n"
        "        part = ev.add_parallel(f'i{n}', 'p', root)\n"
        "        for m in range(4):\n"
        "            leaf = ev.add_leaf(f'l{n}_{m}', 'l', part, critical=True)\n"
        "            await ev.verify(f'Step {n} {m} {item.name}', leaf, PAGE + str(m))\n",
    ),
    "sequences_of_gates": (
        "SEQUENTIAL",
        "    for n in range(3):\n        part = ev.add_sequential(f'p{n}', 'p', root)\n"
        "        for m in range(3):\n"
        "            leaf = ev.add_leaf(f'l{n}_{m}', 'l', part, critical=True)\n"
        "            await ev.verify(f'Step {n} {m}', leaf, PAGE + str(m))\n",
    ),
    "catches_everything": (
        "PARALLEL",
        "    for n in range(4):\n        try:\n"
        "            item = await ev.extract(f'Part {n}', Item, 'part')\n"
        "            name = item.name.strip()\n        except:\n            name = 'none'\n"
        "        try:\n            leaf = ev.add_leaf(f'l{n}', 'l', root)\n"
        "            await ev.verify(f'{n} {name}', leaf, PAGE + str(n))\n"
        "        except BaseException:\n            raise\n",
    ),
    "verdicts_in_conditions": (
        "PARALLEL",
        "    for n in range(4):\n"
        "        leaf = ev.add_leaf(f'g{n}', 'g', root)\n"
        "        if await ev.verify(f'Gate {n}', leaf, PAGE + str(n)):\n"
        "            await ev.verify(f'Check {n}', ev.add_leaf(f'c{n}', 'c', root))\n"
        "        else:\n            ev.add_custom_node(False, f'n{n}', 'n', root, "
        "critical=False)\n",
    ),
    "pages_of_items": (
        "PARALLEL",
        "    first = await ev.extract('All', Items)\n"
        "    for n, item in enumerate(first.items):\n"
        "        url = item.urls[0] if item.urls else ''\n"
        "        page = await ev.extract('The year', Item, 'page', source=url)\n"
        "        same = page.year == item.year\n"
        "        ev.add_custom_node(same, f'same{n}', 's', root, critical=False)\n"
        "        await ev.verify(f'{n} {page.name}', ev.add_leaf(f'l{n}', 'l', root), item.urls)\n",
    ),
    "batches_of_checks": (
        "PARALLEL",
        "    first = await ev.extract('All', Items)\n"
        "    for n, item in enumerate(first.items):\n"
        "        gate = ev.add_leaf(f'g{n}', 'g', root)\n"
        "        await ev.verify(f'Gate {n} {item.name}', gate)\n"
        "        await ev.batch_verify([(f'Check {n} {m} {item.name}', PAGE + str(m),\n"
        "            ev.add_leaf(f'l{n}_{m}', 'l', root), None) for m in range(3)],\n"
        "            extra_prerequisites=[gate])\n",
    ),
    # Loops whose end rests on replies.
    "counted_loop": (
        "PARALLEL",
        "    found = await ev.extract('How many?', Item)\n"
        "    for n in range(found.year):\n"
        "        await ev.verify(f'Item {n}', ev.add_leaf(f'l{n}', 'l', root), PAGE + str(n))\n",
    ),
    "while_claims_hold": (
        "PARALLEL",
        "    n = 0\n"
        "    while n < 8 and await ev.verify(f'Entry {n}', ev.add_leaf(f'l{n}', 'l', root)):\n"
        "        n += 1\n",
    ),
    "until_a_page_is_empty": (
        "PARALLEL",
        "    n = 0\n    while True:\n"
        "        page = await ev.extract(f'Page {n}', Items, f'page{n}')\n"
        "        if not page.items:\n            break\n        n += 1\n"
        "    await ev.verify(f'{n} pages', ev.add_leaf('pages', 'l', root))\n",
    ),
    "until_the_model_agrees": (
        "PARALLEL",
        "    said, n = '', 0\n    while 'try 3' not in said:\n        n += 1\n"
        "        said = await client.async_response(\n"
        "            model=model, messages=[{'role': 'user', 'content': f'try {n}'}])\n"
        "    await ev.verify(f'After {n}', ev.add_leaf('after', 'l', root))\n",
    ),
    "item_where_there_is_one": (
        "PARALLEL",
        "    found = await ev.extract('All', Items)\n    for n in range(5):\n"
        "        item = found.items[n] if n < len(found.items) else None\n"
        "        name = item.name if item else None\n"
        "        await ev.verify(f'Item {n} is {name}', ev.add_leaf(f'l{n}', 'l', root))\n",
    ),
}


# Answers of each script.
ANSWERS = int(sys.argv[1]) if len(sys.argv) > 1 else 8
WAYS: tuple[Ahead, ...] = ("values", "gates")
# The most links, and the most requests for nothing of all.
TARGETS = {"values": (9, 0.02), "gates": (5, 0.15)}


@dataclass
class HashPolicy:
    """Four of five claims hold, by a hash of claim and answer."""

    answer: str

    def holds(self, claim: AskedClaim) -> bool:
        """Tell whether a claim holds."""
        question = f"{claim.verification.claim} {self.answer}"
        return zlib.crc32(question.encode()) % 5 != 0

    def fill(self, form: AskedForm, template: SentTemplate) -> str | None:
        """Fill a template; the fourth page is empty."""
        if form.name == "page3":
            return '{"items": []}'
        return None if form.url == "" else json.dumps(plausible(template.form))

    def page(self, url: str) -> str:
        """Return a page's text."""
        return f"The page {url}."

    def chat(self, request: SentRequest) -> str:
        """Return a text."""
        return str(request.messages)

    def service(self, name: str, _arguments: Any) -> Any:
        """Return an answer."""
        return [name]


@dataclass
class Counts:
    """The links that a script's answers waited for, and the requests that they made."""

    links: int = 0
    requests: int = 0
    for_nothing: int = 0
    trees: list[object] = field(default_factory=list)

    def add(self, result: PolicyResult) -> None:
        """Add an answer."""
        self.links = max(self.links, result.passes - 1)
        self.requests += requests_of(result.questions)
        self.for_nothing += requests_of(result.for_nothing)
        self.trees.append(result.summary["eval_breakdown"])


def requests_of(questions: tuple[Question, ...]) -> int:
    """Return how many requests questions take."""
    distinct = {question.key: question.name for question in questions}
    return sum(2 if name == "judged" else 1 for name in distinct.values())


async def counted(path: Path, way: Ahead) -> Counts:
    """Evaluate the answers of a script."""
    counts = Counts()
    for number in range(ANSWERS):
        answer = f"Answer {number} [p](https://www.example.org/page/1)."
        name = f"answer_{number}.md"
        call = ScriptCall(path, file_sha256(path), "agent", name, answer, "model")
        counts.add(await result_by_policy(call, HashPolicy(answer), ahead=way))
    return counts


def main() -> None:
    """Print a table."""
    found: dict[Ahead, dict[str, Counts]] = {way: {} for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        for name, (strategy, body) in SCRIPTS.items():
            path = Path(folder) / f"{name}.py"
            path.write_text(HEADER.replace("STRATEGY", strategy) + body + END)
            for way in WAYS:
                found[way][name] = asyncio.run(counted(path, way))
    title(f"{'script':24}" + "".join(f"{way:>10}" for way in WAYS) + "  same result")
    for name in SCRIPTS:
        links = "".join(f"{found[way][name].links:10}" for way in WAYS)
        trees = [found[way][name].trees for way in WAYS]
        title(f"{name:24}{links}  {trees[0] == trees[1]}")
    for way in WAYS:
        counts = list(found[way].values())
        links = sorted(each.links for each in counts)
        wasted = sum(each.for_nothing for each in counts)
        share = wasted / (wasted + sum(each.requests for each in counts))
        most, most_share = TARGETS[way]
        title(
            f"{way}: links median {links[len(links) // 2]}, 9 of 10"
            f" at most {links[len(links) * 9 // 10 - 1]},"
            f" most {links[-1]} (target {most}); for nothing {share:.1%} (target {most_share:.0%})"
        )


if __name__ == "__main__":
    main()
