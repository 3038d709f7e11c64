"""Findings from a rubric's structure, without an author's help and without a model."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel

from mind2web2.authoring.plausible import (
    MOST_ITEMS,
    Filling,
    fields_of,
    filled,
    lists_of,
    word_of,
)
from mind2web2.authoring.rehearsal_run import (
    OUTPUT_TOKENS,
    Asked,
    LoadedScript,
    Rehearsed,
    Requests,
    TreeNode,
    World,
    WorldTimeoutError,
    rehearsed,
)
from mind2web2.errors import EvalScriptError
from mind2web2.llm_client.chat import Usage
from mind2web2.llm_client.own_price import OwnPrice
from mind2web2.llm_client.prices import price_usd
from mind2web2.rubric.rescoring import Rescoring
from mind2web2.rubric.verdicts import Outcome, aggregate
from mind2web2.scripts.rubric_file import ANSWER_EXTRACTION, ITEM, RubricFile
from mind2web2.utils.text import counted
from mind2web2.verification.stand_ins import empty_instance

# A worthless answer may have that many points before they are a finding.
MOST_POINTS = 0.1
_NEARLY = 1e-9
_MOST_NAMES = 8
_NO_ANSWER = "I could not find anything about this."


@dataclass(frozen=True)
class Finding:
    """Something about a rubric that its author should know.

    Args:
        kind: a short name, such as ``points for nothing``.
        leaves: the leaves that it is about.
    """

    kind: str
    message: str
    leaves: tuple[str, ...] = ()


@dataclass(frozen=True)
class JudgePrice:
    """The judge whose prices count; ``own`` is the user's price of it, in place of the list's."""

    model: str
    own: OwnPrice | None = None


@dataclass
class Structure:
    """The findings of a rehearsal's structure part.

    Args:
        scores: of the worlds, by name.
        gates: the score that is left where a gate alone fails, by leaf.
        judge_model: whose price ``cost_usd`` is, of one answer; ``None`` where it is unknown.
        unshown: leaves that code decides and that no rehearsal has seen pass.
    """

    scores: dict[str, float] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    unshown: tuple[str, ...] = ()
    gates: dict[str, float] = field(default_factory=dict)
    leaves: int = 0
    judgments: int = 0
    longest_chain: int = 0
    pages: int = 0
    judge_model: str = ""
    cost_usd: float | None = None

    def note(self, kind: str, message: str, leaves: Iterable[str] = ()) -> None:
        """Add a finding."""
        self.findings.append(Finding(kind, message, tuple(leaves)))


class _Rehearsal:
    """The evaluations of one task."""

    def __init__(
        self,
        script: LoadedScript,
        question: str,
        rubric: RubricFile | None,
    ) -> None:
        self._script = script
        self._question = question
        self._given = {} if rubric is None else _wanted_values(rubric)
        self._known_counts = {} if rubric is None else _list_counts(rubric)
        self.templates: dict[str, type[BaseModel]] = {}
        self.runs: list[Rehearsed] = []
        self.failures: dict[str, str] = {}
        self.counts: dict[str, int] = dict(self._known_counts)

    async def run(
        self,
        name: str,
        *,
        holds: bool | str = True,
        filling: Filling | None = None,
        is_empty: bool = False,
        answer: str = "",
        has_pages: bool = True,
        count_rounds: bool = False,
        false_leaf: str | None = None,
    ) -> Rehearsed:
        """Evaluate one answer; see ``World``. ``name`` says which one it is."""
        filling = filling or self.filling()

        def decide(asked: Asked) -> bool:
            if asked.node is not None and asked.node == false_leaf:
                return False
            if isinstance(holds, bool):
                return holds
            # Keywords: the judge has only the answer, and the answer says so.
            return asked.page is None and self._repeats_a_value(asked.claim)

        def fill(template: type[BaseModel], name: str) -> BaseModel:
            if is_empty:
                return empty_instance(template)
            return filled(template, name, filling)

        def has_page(_url: str) -> bool:
            return has_pages

        world = World(answer or self._answer_text(), decide, fill, has_page)
        try:
            done = await rehearsed(self._script, world, count_rounds=count_rounds)
        except WorldTimeoutError:
            raise
        except EvalScriptError as error:
            if not self.runs:
                raise
            self.failures.setdefault(str(error), name)
            # Such an answer has no result: no leaf has a verdict.
            failed = Outcome(0.0, "failed")
            root = TreeNode("root", False, "parallel", failed, ())
            done = Rehearsed(0.0, root, Requests())
        self.templates.update(done.requests.templates)
        self.runs.append(done)
        return done

    def filling(self, **changes: object) -> Filling:
        """Return how extractions are filled where nothing is said."""
        base = {"counts": self.counts, "given": self._given, **changes}
        return Filling(**base)  # type: ignore[arg-type]  # the fields of Filling

    def _answer_text(self) -> str:
        words = [word_of(number, index) for number in range(3) for index in range(5)]
        return f"{self._question}\n\nQuince, {', '.join(words)} https://quince.example/urls"

    @staticmethod
    def _repeats_a_value(claim: str) -> bool:
        words = {"Quince"}
        for number in range(6):
            for index in range(MOST_ITEMS):
                words.add(word_of(number, index))
        capitalised = re.findall(r"[A-Z][a-z]+", claim)
        if not words.isdisjoint(capitalised):
            return True
        # Values that all items share.
        return any(text in claim for text in ("2019", "42", "10:30"))

    async def count_items(self) -> None:
        """Find out how many items of each list count, where the rubric does not say."""
        many_items = Filling(default_count=MOST_ITEMS, given=self._given)
        probe = await self.run("many items", filling=many_items)
        claims = [f"{asked.claim} {asked.page}" for asked in probe.requests.claims]
        asked_text = "\n".join(claims).lower()
        for name, template in self.templates.items():
            for number, path in enumerate(lists_of(template, name)):
                if path in self.counts:
                    continue
                used = []
                for item in range(MOST_ITEMS):
                    word = word_of(number, item).lower()
                    if word in asked_text:
                        used.append(item)
                # Where no claim names an item, as many as a filling has by default.
                self.counts[path] = max(used, default=2) + 1


def _wanted_values(rubric: RubricFile) -> dict[str, object]:
    """Return values that satisfy a rubric file's comparisons, by path."""
    wanted: dict[str, object] = {}
    for node in rubric.root.walk():
        equals = node.equals
        if equals is None or equals.field.startswith(f"{ITEM}."):
            continue
        own = _path(rubric, equals.field)
        if equals.value is not None:
            wanted[own] = rubric.expected(equals)
        elif equals.same_as is not None:
            same = _path(rubric, equals.same_as)
            is_number = rubric.field_at(equals.field).type in ("number", "integer")
            plausible = 7 if is_number else "2019"
            wanted[own] = wanted.setdefault(same, plausible)
        else:
            parts = [_path(rubric, part) for part in equals.sum_of]
            for part in parts:
                wanted.setdefault(part, 3)
            wanted[own] = sum(float(str(wanted[part])) for part in parts)
    return wanted


def _path(rubric: RubricFile, name: str) -> str:
    extraction = name.partition(".")[0]
    if rubric.extract[extraction].page is not None:
        return name
    return f"{ANSWER_EXTRACTION}.{name}"


def _list_counts(rubric: RubricFile) -> dict[str, int]:
    return {
        f"{ANSWER_EXTRACTION}.{name}": spec.list
        for name, spec in rubric.extract.items()
        if spec.list is not None
    }


async def structure_of(
    script: LoadedScript,
    question: str,
    rubric: RubricFile | None,
    price: JudgePrice,
) -> Structure:
    """Rehearse a task's structure.

    Args:
        rubric: the task's rubric file, where it has one.
        price: of the judge that is to come.

    Raises:
        EvalScriptError: the script failed.
    """
    rehearsal = _Rehearsal(script, question, rubric)
    found = Structure()
    if rubric is None:
        await rehearsal.count_items()
    right = await rehearsal.run("all right", count_rounds=True)
    _note_amounts(found, right, price)
    met = _met_by_cases_only(found, right)
    _check_right(found, right, met)
    await _check_worthless(found, rehearsal)
    await _check_leaves(found, rehearsal, right, met)
    await _check_fields(found, rehearsal, right)
    await _check_lists(found, rehearsal, right)
    _check_reached(found, rehearsal, met)
    _check_twins(found, rehearsal, right)
    for error, world in rehearsal.failures.items():
        found.note("script failed", f"{world}: no result, since {error}")
    return found


def _note_amounts(found: Structure, right: Rehearsed, price: JudgePrice) -> None:
    requests = right.requests
    found.leaves = len(right.tree.leaves)
    found.judgments = requests.count
    found.longest_chain = requests.rounds
    found.pages = len(requests.pages)
    count = requests.usage.requests
    mean_input = requests.usage.input_tokens // max(count, 1)
    found.judge_model = price.model
    mean_usage = Usage(input_tokens=mean_input, output_tokens=OUTPUT_TOKENS)
    mean_cost_usd = price_usd(mean_usage, price.model, price.own)
    if mean_cost_usd is not None:
        found.cost_usd = mean_cost_usd * count


def _met_by_cases_only(found: Structure, right: Rehearsed) -> dict[str, Outcome]:
    """Return the leaves that the script's own code fails on plausible values, as if they passed."""
    failed = []
    for leaf in right.tree.leaves:
        if leaf.decided_by == "script" and not leaf.verdict.score:
            failed.append(leaf.id)
    found.unshown = tuple(failed)
    return {name: Outcome(1.0, "passed") for name in failed}


def _score(tree: TreeNode, verdicts: Mapping[str, Outcome]) -> float:
    outcomes = aggregate(tree, _by_node(tree, verdicts))
    return outcomes[id(tree)].score


def _by_node(tree: TreeNode, verdicts: Mapping[str, Outcome]) -> dict[int, Outcome]:
    found = {}
    for leaf in tree.leaves:
        if leaf.id in verdicts:
            found[id(leaf)] = verdicts[leaf.id]
    return found


def _needed(tree: TreeNode) -> dict[str, set[str]]:
    """Return, for each leaf whose code states prerequisites, the leaves that they consist of."""
    nodes = {node.id: node for node in tree.walk()}
    needed = {}
    for leaf in tree.leaves:
        before = set()
        for name in leaf.prerequisites:
            if name in nodes:
                before |= {each.id for each in nodes[name].leaves}
        if before:
            needed[leaf.id] = before
    return needed


def _behind(needed: Mapping[str, set[str]], failed: str) -> set[str]:
    """Return a leaf with all that fall with it, those behind them included."""
    gone = {failed}
    while True:
        more = set()
        for name, before in needed.items():
            if name not in gone and before & gone:
                more.add(name)
        if not more:
            return gone
        gone |= more


def _check_right(found: Structure, right: Rehearsed, met: Mapping[str, Outcome]) -> None:
    found.scores["all right"] = right.score
    statuses = {leaf.id: leaf.verdict.status for leaf in right.tree.leaves}
    undecided = [name for name, status in statuses.items() if status == "initialized"]
    if undecided:
        message = f"never judged, and so never passed: {_names(undecided)}"
        found.note("never judged", message, undecided)
    if right.score >= 1 - _NEARLY or met:
        return
    failed = [name for name, status in statuses.items() if status == "failed"]
    unverified = ("skipped", "initialized")
    skipped = [name for name, status in statuses.items() if status in unverified]
    lost = failed or skipped
    if lost:
        reason = f"{_names(lost)} does not pass"
    else:
        lost = [leaf.id for leaf in right.tree.leaves if leaf.verdict.score < 1]
        reason = (
            f"the script itself gives {_names(lost)} less than 1"
            if lost
            else "every leaf has 1, and the script returns another score"
        )
    message = f"all right gives {right.score:.2f} instead of 1: {reason}"
    found.note("no full score", message, lost)


async def _check_worthless(found: Structure, rehearsal: _Rehearsal) -> None:
    worlds: dict[str, dict[str, object]] = {
        "all wrong": {"holds": False},
        "empty extraction": {"holds": False, "is_empty": True, "answer": _NO_ANSWER},
        "the question as the answer": {
            "holds": False,
            "is_empty": True,
            "answer": rehearsal._question,
        },
        "keywords with invented links": {"holds": "keywords", "has_pages": False},
    }
    for name, world in worlds.items():
        done = await rehearsal.run(name, **world)  # type: ignore[arg-type]  # keywords of run
        found.scores[name] = done.score
        if done.score > MOST_POINTS:
            leaves = [leaf.id for leaf in done.tree.leaves if _gives_points(done, leaf)]
            source = f"points come from {_names(leaves)}" if leaves else "no single leaf gives them"
            message = f"{name} gives {done.score:.2f} instead of 0: {source}"
            found.note("points for nothing", message, leaves)


def _gives_points(done: Rehearsed, leaf: TreeNode) -> bool:
    if leaf.verdict.score <= 0:
        return False
    without = {leaf.id: Outcome(0.0, "failed")}
    return _score(done.tree, without) < done.score - _NEARLY


async def _check_leaves(
    found: Structure,
    rehearsal: _Rehearsal,
    right: Rehearsed,
    met: Mapping[str, Outcome],
) -> None:
    """Let each leaf be false in turn."""
    full = _score(right.tree, met)
    if full <= 0:
        return
    needed = _needed(right.tree)
    rescoring = Rescoring(right.tree, _by_node(right.tree, met))
    idle = []
    for leaf in right.tree.leaves:
        if not leaf.verdict.score and leaf.id not in met:
            continue
        gone = _behind(needed, leaf.id)
        failed = {name: Outcome(0.0, "failed") for name in gone}
        score = rescoring.score_with(_by_node(right.tree, failed))
        if leaf.critical:
            found.gates[leaf.id] = score
        if score >= full - _NEARLY:
            idle.append(leaf.id)
    confirmed = []
    for name in idle:
        # A script may read verdicts: what the tree alone says is tried before it is reported.
        done = await rehearsal.run(f"{name} false", false_leaf=name)
        if _score(done.tree, met) >= full - _NEARLY:
            confirmed.append(name)
    if confirmed:
        names = _names(confirmed)
        message = f"never matters: the score stays {full:.2f} without {names}"
        found.note("never matters", message, confirmed)


async def _check_fields(found: Structure, rehearsal: _Rehearsal, right: Rehearsed) -> None:
    """Leave each field empty in turn."""
    unused = []
    for name, template in sorted(rehearsal.templates.items()):
        for path in fields_of(template, name):
            filling = rehearsal.filling(empty=frozenset({path}))
            done = await rehearsal.run(f"{path} empty", filling=filling)
            is_asked_alike = _questions(done) == _questions(right)
            if is_asked_alike and done.statuses() == right.statuses():
                unused.append(path)
            if unsourced := _judged_without_page(done, right):
                message = f"without {path} these claims are judged from the answer alone: {_names(unsourced)}"
                found.note("page not needed", message, unsourced)
            if done.score > right.score + _NEARLY:
                message = (
                    f"an empty {path} gives {done.score:.2f}, more than the full {right.score:.2f}"
                )
                found.note("gain by omission", message)
    if unused:
        found.note("unused field", f"extracted and never used: {', '.join(unused)}")


def _questions(done: Rehearsed) -> list[tuple[str, str | None]]:
    return [(asked.claim, asked.page) for asked in done.requests.claims]


def _judged_without_page(done: Rehearsed, right: Rehearsed) -> list[str]:
    """Return the leaves with a claim on a page where all is right, and on no page now."""
    claims = right.requests.claims
    with_page = {asked.node for asked in claims if asked.page is not None}
    without = {asked.node for asked in done.requests.claims if asked.page is None}
    return sorted(name for name in with_page & without if name is not None)


async def _check_lists(found: Structure, rehearsal: _Rehearsal, right: Rehearsed) -> None:
    """Give lists 0, 1, k and k + 2 items."""
    for path, count in sorted(rehearsal.counts.items()):
        name = path.rpartition(".")[2]
        for items in dict.fromkeys((0, 1, count + 2)):
            counts = {**rehearsal.counts, path: items}
            filling = rehearsal.filling(counts=counts)
            some_items = counted(items, "item")
            done = await rehearsal.run(f"{some_items} of {path}", filling=filling)
            score = f"{done.score:.2f}"
            found.scores[f"{items} of {count} {name}"] = done.score
            is_less = done.score < right.score - _NEARLY
            could_be_less = items < count and count > 1 and right.score > 0
            if could_be_less and not is_less:
                message = f"{items} of {count} items of {path} have the score of all, {score}"
                found.note("missing items are free", message)
            if items > count and is_less:
                all_items = counted(count, "item")
                message = f"{some_items} of {path} give {score}, less than {all_items}"
                found.note("more is less", message)


def _check_reached(found: Structure, rehearsal: _Rehearsal, met: Mapping[str, Outcome]) -> None:
    seen: dict[str, set[str]] = defaultdict(set)
    for run in rehearsal.runs:
        for leaf in run.tree.leaves:
            seen[leaf.id].add(leaf.verdict.status)
    never = [name for name, statuses in seen.items() if statuses <= {"skipped"}]
    if never and not met:
        found.note("never reached", f"never reached: {_names(never)}", never)
    always = []
    for name, statuses in seen.items():
        if statuses == {"passed"} and name not in met:
            always.append(name)
    if always:
        found.note("always true", f"true in every rehearsal: {_names(always)}", always)


def _check_twins(found: Structure, rehearsal: _Rehearsal, right: Rehearsed) -> None:
    """Find leaves that ask the same, and leaves decided by code that always fall together."""
    for group in (*_of_one_question(right), *_of_one_history(rehearsal, right)):
        # Items of a loop are alike by design.
        kinds = {re.sub(r"\d+", "", name) for name in group}
        if len(kinds) > 1:
            names = sorted(group)
            found.note("twins", f"always fall together: {_names(names)}", names)


def _of_one_question(right: Rehearsed) -> list[set[str]]:
    """Return the leaves of each claim that is judged on the same pages."""
    pages: dict[tuple[str, str], set[str | None]] = defaultdict(set)
    for asked in right.requests.claims:
        pages[asked.node or "", asked.claim].add(asked.page)
    leaves: dict[tuple[str, frozenset[str | None]], set[str]] = defaultdict(set)
    for (node, claim), cited in pages.items():
        leaves[claim, frozenset(cited)].add(node)
    return list(leaves.values())


def _of_one_history(rehearsal: _Rehearsal, right: Rehearsed) -> list[set[str]]:
    """Return the leaves that code decides, those with the same verdict in every run together."""
    runs = [run.statuses() for run in rehearsal.runs]
    leaves: dict[tuple[str | None, ...], set[str]] = defaultdict(set)
    for leaf in right.tree.leaves:
        history = tuple(run.get(leaf.id) for run in runs)
        if leaf.decided_by == "script" and len(set(history)) > 1:
            leaves[history].add(leaf.id)
    return list(leaves.values())


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    if more > 0:
        return f"{shown} and {more} more"
    return shown
