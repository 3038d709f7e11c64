"""Eval scripts made up at random."""

import random

HEADER = """\
import asyncio
from copy import copy
from mind2web2 import AggregationStrategy, Evaluator
from pydantic import BaseModel, field_validator
from pydantic_core import to_jsonable_python

SEEN = []
COUNTS = {}

def note(node):
    SEEN.append((node.id, node.status))
    return node.score

def hidden(node):
    return getattr(node, "sta" + "tus")

def fields(node):
    return sorted(map(str, vars(node).items()))

def mapping(node):
    return str(getattr(node, "__di" + "ct__").get("score"))

def asked(client):
    return getattr(client, "led" + "ger").usage.judgments

def is_stored(cache, url):
    return getattr(cache, "h" + "as")(url)

def store(cache, url, put):
    getattr(cache, put)(url, "put by the script", None)

def count():
    COUNTS["calls"] = COUNTS.get("calls", 0) + 1
    return COUNTS["calls"]

class Holder(BaseModel):
    node: object

class Town(BaseModel):
    name: str = ""

class Checked(Town):
    @field_validator("name")
    @classmethod
    def checked(cls, name):
        return name + "!"

async def each(evaluator, leaves, name, extra=None):
    for number, leaf in enumerate(leaves):
        await evaluator.verify(f"{name} {number}", leaf, extra_prerequisites=extra)

async def wanted(evaluator, leaf, name):
    return await evaluator.verify(name, leaf)

async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="m"):
    evaluator = Evaluator()
    strategy = AggregationStrategy.{strategy}
    given = {"client": client, "answer": answer, "global_cache": cache}
    root = evaluator.initialize("made_up", strategy=strategy, **given)
    v = evaluator.verifier
"""
PAGES = [f"https://lake.example/{name}" for name in ("stored", "captured", "also-captured", "gone")]
FOOTER = """
    evaluator.add_custom_info({"seen": [list(pair) for pair in SEEN]})
    return evaluator.get_summary()
"""


class MadeUp:
    """A script under construction: which nodes it has, and its lines."""

    def __init__(self, draw):
        self._random = draw
        self.inner = [("root", False)]
        self.leaves = []
        self.towns = ["answer"]
        self.lines = []
        self.with_pages = False
        self.pages_a_claim = [1, 1, 2, 3]
        self.strategy = self._of(["PARALLEL", "SEQUENTIAL"])
        self._number = 0
        self._favourites = {}
        self._last_url = PAGES[0]

    def _of(self, choices):
        return choices[self._random.randrange(len(choices))]

    def _favourite(self, kind, choices):
        """Return one of the two choices of a kind that this script makes."""
        numbers = self._favourites.setdefault(kind, self._random.sample(range(len(choices)), 2))
        return choices[self._of(numbers)]

    def some_of(self, choices, number):
        """Return some of these."""
        return self._random.sample(choices, number)

    def _name(self, stem):
        self._number += 1
        return f"{stem}{self._number}"

    def _line(self, text, indent=4):
        self.lines.append(" " * indent + text)

    def _place(self):
        parent, is_critical = self._of(self.inner)
        critical = is_critical or self._of([True, False, False])
        return parent, critical

    def add_inner(self):
        """Add a group."""
        parent, critical = self._place()
        name, how = self._name("g"), self._of(["parallel", "sequential"])
        self._line(f"{name} = evaluator.add_{how}('{name}', 'd', {parent}, critical={critical})")
        self.inner.append((name, critical))

    def add_leaf(self):
        """Add a leaf."""
        parent, critical = self._place()
        name = self._name("l")
        self._line(f"{name} = evaluator.add_leaf('{name}', 'd', {parent}, critical={critical})")
        self.leaves.append(name)

    def add_custom(self):
        """Add a leaf that the script decides."""
        parent, critical = self._place()
        name = self._name("c")
        result = self._of([True, True, False])
        self._line(
            f"{name} = evaluator.add_custom_node({result}, '{name}', 'd', {parent}, {critical})"
        )
        self.leaves.append(name)

    def _options(self, target):
        options = ""
        named = [
            name for name in [*self.leaves, *(name for name, _ in self.inner)] if name != target
        ]
        kind = self._of(["none", "none", "one", "list", "mixed"])
        if kind != "none" and named:
            first, second = self._of(named), self._of(named)
            given = {
                "one": first,
                "list": f"[{first}, {second}]",
                "mixed": f"[None, {first}]",
            }[kind]
            options += f", extra_prerequisites={given}"
        return options + self._of(
            ["", "", ", num_trials=1", ", num_trials=5", ", majority_vote=False"]
        )

    def _call(self, leaf):
        claim = self._name("claim ")
        options = self._options(leaf)
        if self.with_pages and self._of([True, True, False]):
            urls = [self._of(PAGES) for _ in range(self._of(self.pages_a_claim))]
            self._last_url = urls[0]
            sources = self._of([repr(urls), repr(urls[0])])
            return f"evaluator.verify('{claim}', {leaf}, {sources}{options})"
        return self._of(
            [
                f"evaluator.verify('{claim}', {leaf}{options})",
                f"evaluator.verify(claim='{claim}', node={leaf}, sources=[]{options})",
                f"v.simple_verify('{claim}', {leaf}{options})",
            ]
        )

    def verify(self, indent=4):
        """Verify and look away."""
        self._line(f"await {self._call(self._of([*self.leaves, 'None']))}", indent)

    def verify_group(self):
        """Verify what has children, or will have some."""
        self._line(f"await {self._call(self._of(self.inner)[0])}")

    def wait(self):
        """Verify and look at the verdict."""
        name = self._name("ok")
        call = self._of(
            [
                self._call(self._of(self.leaves)),
                f"wanted(evaluator, {self._of(self.leaves)}, '{name}')",
            ]
        )
        self._line(f"{name} = await {call}")
        self._line(f"evaluator.add_custom_node({name}, '{name}', 'd', root, critical=False)")

    def branch(self):
        """Go on by a verdict."""
        self._line(f"if await {self._call(self._of(self.leaves))}:")
        self.verify(8)
        self._line("else:")
        self.verify(8)

    def batch(self):
        """Verify several at the same time."""
        # A leaf twice in one batch has the verdict that happens to come last.
        leaves = [*self._random.sample(self.leaves, 2), "None"]
        items = ", ".join(f"('{self._name('claim ')}', None, {leaf}, None)" for leaf in leaves)
        start = self._of(["", "", f"{self._name('out')} = "])
        self._line(f"{start}await evaluator.batch_verify([{items}])")

    def loop(self):
        """Verify several in a helper."""
        leaves = ", ".join(self._of(self.leaves) for _ in range(3))
        self._line(f"await each(evaluator, [{leaves}], '{self._name('claim ')}')")

    def extract(self):
        """Extract, verify or add something that does not depend on it, and then what does."""
        names = [self._name("town") for _ in range(self._of([1, 2, 3]))]
        for name in names:
            template = self._of(["Town", "Town", "Town", "Checked"])
            source = f", source='{self._of(PAGES)}'" if self.with_pages else ""
            prompt = self._of([f"'{name}?'", f"f'{{{self._of(self.towns)}}}?'"])
            self._line(f"{name} = await evaluator.extract({prompt}, {template}, '{name}'{source})")
            self.towns.append(name)
        self._of([self.verify, self.add_leaf, self.batch, self.loop])()
        self._line(
            self._of(
                [
                    f"evaluator.add_custom_info({{'town': {names[0]}.name}})",
                    f"await evaluator.verify({names[0]}.name, {self._of(self.leaves)})",
                    f"SEEN.append(('x', {names[-1]}))",
                    f"if len({names[0]}.name) > 1: SEEN.append(('y', {names[-1]}.name))",
                ]
            )
        )

    def look_at_values(self):
        """Look at what is recorded of extractions so far."""
        self._line(
            self._of(
                [
                    "SEEN.append(('results', str(evaluator._extraction_results)))",
                    "SEEN.append(('records', str(evaluator.extractor.records)))",
                    "SEEN.append(('copy', str(copy(evaluator)._extraction_results)))",
                ]
            )
        )

    def look(self):
        """Look at what has come out so far."""
        leaf, group = self._of(self.leaves), self._of(self.inner)[0]
        self._line(
            self._favourite(
                "looks",
                [
                    f"SEEN.append(('s', {leaf}.status))",
                    f"SEEN.append(('a', {group}.aggregated_score))",
                    f"SEEN.append(('c', {group}.compute_score()))",
                    "SEEN.append(('r', evaluator.score()))",
                    f"note({leaf})",
                    f"SEEN.append(('h', hidden({leaf})))",
                    f"SEEN.append(('n', sum(n.score for n in [{leaf}])))",
                    f"SEEN.append(('l', [n.status for n in [{leaf}]]))",
                    f"SEEN.append(('m', sorted([{leaf}], key=lambda n: n.score)[0].id))",
                    f"SEEN.append(('e', repr({leaf}.evidence)))",
                    f"SEEN.append(('v', str(vars({leaf}).get('status'))))",
                    f"SEEN.append(('d', mapping({leaf})))",
                    f"SEEN.append(('f', fields({leaf})))",
                    f"evaluator.add_custom_info({{'node': {leaf}}})",
                    f"SEEN.append(('j', to_jsonable_python({group})))",
                    f"SEEN.append(('w', str(Holder(node={leaf}).model_dump(mode='json'))))",
                    "SEEN.append(('asked', asked(client)))",
                    "SEEN.append(('ledger', client.ledger.usage.judgments))",
                ],
            )
        )

    def look_at_pages(self):
        """Look at what is stored so far."""
        url = self._of([self._last_url, self._last_url, self._of(PAGES)])
        self._line(
            self._favourite(
                "looks at pages",
                [
                    f"SEEN.append(('has', cache.has('{url}')))",
                    f"SEEN.append(('stored', is_stored(cache, '{url}')))",
                    f"has = cache.has_web\n    SEEN.append(('alias', has('{url}')))",
                    "SEEN.append(('urls', cache.get_all_urls()))",
                    "SEEN.append(('summary', str(cache.summary())))",
                ],
            )
        )

    def store_page(self):
        """Store a page: by a name that shows what it does, or by one that does not."""
        url, put = (
            self._of(PAGES),
            self._of(["'put_web'", "'put_' + 'web'", "'put_' + 'web'"]),
        )
        self._line(f"store(cache, '{url}', {put})")

    def keep_state(self):
        """Count what would show another attempt."""
        self._line("SEEN.append(('own', count()))")

    def wait_for_nobody(self):
        """Give a verdict a name that nobody reads."""
        self._line(f"{self._name('unread')} = await {self._call(self._of(self.leaves))}")

    def fall(self):
        """Raise late."""
        self._line("raise LookupError('late')")

    def change(self):
        """Change what has been decided, or how."""
        leaf, (group, _) = self._of(self.leaves), self._of(self.inner)
        self._line(
            self._of(
                [
                    f"{leaf}.score, {leaf}.status = 0.0, 'failed'",
                    f"setattr({leaf}, 'status', 'passed')",
                    f"{group}.strategy = AggregationStrategy.SEQUENTIAL",
                    f"{leaf}.add_node(VerificationNode(id='{self._name('x')}', desc='d', "
                    "critical=True))",
                ]
            )
        )

    def hold(self):
        """Hold a semaphore meanwhile."""
        self._line("async with asyncio.Semaphore(1):")
        self.verify(8)

    def together(self):
        """Run helpers at the same time, none of which depends on another."""
        if self.strategy == "SEQUENTIAL":
            return
        calls = []
        for _ in range(2):
            group, leaf, other = self._name("t"), self._name("l"), self._name("l")
            self._line(f"{group} = evaluator.add_sequential('{group}', 'd', root)")
            for name in (leaf, other):
                self._line(f"{name} = evaluator.add_leaf('{name}', 'd', {group})")
            calls.append(f"each(evaluator, [{leaf}, {other}], '{self._name('claim ')}')")
        self._line(f"await asyncio.gather({', '.join(calls)})")

    def source(self):
        """Return the script."""
        header = HEADER.replace("{strategy}", self.strategy).replace(
            "import AggregationStrategy, Evaluator",
            "import AggregationStrategy, Evaluator, VerificationNode",
        )
        return header + "\n".join(self.lines) + FOOTER


def made_up_script(seed, steps, oddities=True, with_pages=False, pages_a_claim=(1, 1, 2, 3)):
    """Return a script's source.

    Args:
        oddities: with changes of what is decided, and reads of all kinds.
        with_pages: claims have sources, and the page cache is looked at and written.
        pages_a_claim: how many sources, as often as each stands here.
    """
    script = MadeUp(random.Random(seed))
    script.with_pages = with_pages
    script.pages_a_claim = pages_a_claim
    for _ in range(2):
        script.add_inner()
    for _ in range(4):
        script.add_leaf()
    usual = [
        *["verify"] * 8,
        "wait",
        "branch",
        "batch",
        "loop",
        "add_inner",
        "add_leaf",
        "add_leaf",
        "add_custom",
        "wait_for_nobody",
        *["extract"] * 3,
    ]
    odd = [
        "look_at_values",
        "look",
        "look",
        "look",
        "change",
        "hold",
        "together",
        "verify_group",
        "keep_state",
    ]
    pages = ["look_at_pages", "look_at_pages", "store_page"]
    # Few kinds in one script: one that costs the attempt would hide what others come to.
    themes = [
        *script.some_of(odd, 2 if oddities else 0),
        *script.some_of(pages, 1 if with_pages else 0),
    ]
    for _ in range(steps):
        getattr(script, script._of([*usual, *themes * 3]))()
    if oddities and script._of([True, *[False] * 5]):
        script.fall()
    return script.source()


def without_times(part):
    """Return a summary, or a part of it, without the times of captures.

    Two runs are not simultaneous.
    """
    if isinstance(part, dict):
        return {
            name: None if name == "captured_at" else without_times(value)
            for name, value in part.items()
        }
    return list(map(without_times, part)) if isinstance(part, list | tuple) else part
