"""Texts that do not parse are named with their line."""

import pytest

from mind2web2_authoring.static import text_faults

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
# A file, what is replaced, what stands there instead, and the line of the fault.
PLANTED = [
    ("lake.py", LEAF, LEAF + ")", 16),
    ("lake.yaml", "sources: lake.urls", "sources: lake.pages", 13),
]
TEXTS = {"lake.py": SCRIPT, "lake.yaml": RUBRIC}


@pytest.fixture
def faults(tmp_path):
    """Return the faults of a text as a file."""

    def read(name, text):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return text_faults(path)

    return read


@pytest.mark.parametrize("name", TEXTS)
def test_sound_texts_have_no_fault(faults, name):
    assert faults(name, TEXTS[name]) == []


@pytest.mark.parametrize(("name", "old", "new", "line"), PLANTED)
def test_a_planted_fault_is_found(faults, name, old, new, line):
    assert [each.line for each in faults(name, TEXTS[name].replace(old, new))] == [line]


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
    assert all(each.reason for each in text_faults(path))
