"""Text rules: each finds what it is for."""

import pytest

from mind2web2.authoring.static import RULES, remarks_on

SCRIPT = """\
from pydantic import BaseModel, Field
from mind2web2 import Evaluator


class Lake(BaseModel):
    name: str | None = None
    depth: str | None = None
    urls: list[str] = Field(default_factory=list)


async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"):
    evaluator = Evaluator()
    evaluator.initialize(task_id="lake", client=client, answer=answer)
    lake = await evaluator.extract(prompt="Extract the deepest lake.", template_class=Lake)
    evaluator.add_custom_node(bool(lake.name and lake.urls), "given", "A lake and a page are given")
    leaf = evaluator.add_leaf("depth", "The depth is right")
    await evaluator.verify(f"The lake {lake.name} is {lake.depth} deep.", leaf, sources=lake.urls)
    return evaluator.get_summary()
"""
RUBRIC = """\
task: lake
question: Which lake is the deepest of the valley?
extract:
  lake:
    ask: the deepest lake
    fields: {name: its name, depth: its depth, urls: its pages}
root:
  children:
    - {id: given, desc: A lake is given, critical: true, present: [lake.name, lake.urls]}
    - id: depth
      desc: The depth is supported
      claim: The lake {lake.name} is {lake.depth} deep.
      sources: lake.urls
"""
LEAF = 'leaf = evaluator.add_leaf("depth", "The depth is right")'
# A rule, what is replaced, what stands there instead.
PLANTED = [
    ("R101", LEAF, LEAF + ")"),
    ("R102", "return evaluator.get_summary()", "return evaluatr.get_summary()"),
]
PLANTED_IN_RUBRICS = [
    ("R101", "sources: lake.urls", "sources: lake.pages", 13),
]


@pytest.fixture
def remarks(tmp_path):
    """Return the remarks on a text as a file."""

    def read(text, name="lake.py"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return remarks_on(path)

    return read


def test_sound_texts_have_no_remark(remarks):
    assert remarks(SCRIPT) == remarks(RUBRIC, "lake.yaml") == []


@pytest.mark.parametrize(("rule", "old", "new"), PLANTED)
def test_a_planted_fault_is_found(remarks, rule, old, new):
    assert old in SCRIPT
    assert rule in {each.rule for each in remarks(SCRIPT.replace(old, new))}


@pytest.mark.parametrize(("rule", "old", "new", "line"), PLANTED_IN_RUBRICS)
def test_a_planted_fault_of_a_rubric_file_is_found(remarks, rule, old, new, line):
    found = remarks(RUBRIC.replace(old, new), "lake.yaml")
    assert (rule, line) in {(each.rule, each.line) for each in found}


def test_every_rule_has_a_planted_fault():
    assert {rule for rule, *_ in PLANTED} == RULES.keys()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00",
        b"\xff\xfe",
        b"# coding: nonsense\nx = 1",
        b"x = " + b"(" * 3000 + b")" * 3000,
        b"def evaluate_answer(): " + b"-" * 5000 + b"1",
        b"evaluator.verify(*a, **b)\nevaluator.add_leaf()\nevaluator.batch_verify([()])",
        b"x = x\nevaluator.verify(x, y, x)\na = b\nb = a\nevaluator.verify(a, None, a)",
    ],
)
def test_no_script_stops_it(tmp_path, content):
    path = tmp_path / "odd.py"
    path.write_bytes(content)
    assert all(each.rule in RULES for each in remarks_on(path))
