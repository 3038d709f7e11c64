"""Lint: each rule finds what it is for, and leaves alone what only looks like it."""

import json
import re
from pathlib import Path

import pytest
from projects import REPOSITORY, call

from mind2web2.authoring.lint import lint_file, rules_of, task_files
from mind2web2.authoring.lint_rules import RULES
from mind2web2.cli import main

EXAMPLES = sorted((REPOSITORY / "eval_scripts/example").glob("*.py"))
RUBRICS = sorted((REPOSITORY / "examples/rubrics").rglob("*.yaml"))

SCRIPT = """\
from pydantic import BaseModel, Field
from mind2web2 import Evaluator

QUESTION = "Which lake is the deepest of the valley, and how deep is it?"


class Lake(BaseModel):
    name: str | None = None
    depth: str | None = None
    urls: list[str] = Field(default_factory=list)


async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="o4-mini"):
    evaluator = Evaluator()
    evaluator.initialize(task_id="lake", client=client, task_description=QUESTION, answer=answer)
    lake = await evaluator.extract(prompt="Extract the deepest lake.", template_class=Lake)
    evaluator.add_custom_node(bool(lake.name and lake.urls), "given", "A lake and a page are given")
    leaf = evaluator.add_leaf("depth", "The depth is right")
    await evaluator.verify(f"The lake {lake.name} is {lake.depth} deep.", leaf, sources=lake.urls)
    return evaluator.get_summary()
"""
LEAF = 'leaf = evaluator.add_leaf("depth", "The depth is right")'
VERIFY = (
    'await evaluator.verify(f"The lake {lake.name} is {lake.depth} deep.", leaf, sources=lake.urls)'
)
GATE = 'evaluator.add_custom_node(bool(lake.name and lake.urls), "given", "A lake and a page are given")'
PROMPT = 'prompt="Extract the deepest lake."'

# A rule, what is replaced, what stands there instead; found, and left alone.
PLANTED = [
    ("R101", LEAF, LEAF + ")"),
    ("R102", "return evaluator.get_summary()", "return evaluatr.get_summary()"),
    ("R103", "async def evaluate_answer", "async def evaluate_answers"),
    ("R103", "async def evaluate_answer", "def evaluate_answer"),
    ("R201", ", sources=lake.urls", ""),
    ("R201", "sources=lake.urls", "sources=[]"),
    ("R202", "lake.name and lake.urls", "lake.name"),
    (
        "R202",
        '"A lake and a page are given")',
        '"A lake and a page are given", critical=False)',
    ),
    ("R203", "sources=lake.urls", "sources=None"),
    ("R204", "bool(lake.name and lake.urls)", '"lake" in answer.lower()'),
    ("R204", "bool(lake.name and lake.urls)", 'bool(re.search(r"\\\\d+ m", answer))'),
    (
        "R204",
        GATE,
        'has_link = "http" in answer\n    '
        + GATE.replace("bool(lake.name and", "bool(has_link and"),
    ),
    (
        "R205",
        GATE,
        GATE.replace("lake.name and", 'lake.name == "Dunmere" and') + "; " + "pass",
    ),
    (
        "R301",
        '"A lake and a page are given")',
        '"A lake and a page are given", critical=False)',
    ),
    (
        "R302",
        LEAF,
        'part = evaluator.add_parallel("part", "d", critical=True)\n    '
        'leaf = evaluator.add_leaf("depth", "d", part)',
    ),
    ("R303", GATE, GATE + "\n    " + GATE.replace('"given"', '"given_too"')),
    ("R303", VERIFY, VERIFY + "\n    " + VERIFY),
    ("R304", LEAF, LEAF.replace('"depth"', '"given"')),
    (
        "R305",
        LEAF,
        LEAF + '\n    other = evaluator.add_leaf("area", "The area is right")',
    ),
    ("R305", LEAF, LEAF + '\n    evaluator.add_leaf("area", "The area is right")'),
    (
        "R306",
        "async def evaluate_answer",
        "class Lakes(BaseModel):\n    lakes: list[Lake] = []\n\n\nasync def evaluate_answer",
    ),
    ("R401", "is {lake.depth} deep.", "is {lake.depth} deep and has a ferry."),
    ("R402", "is {lake.depth} deep.", "is suitable for families."),
    ("R402", "is {lake.depth} deep.", "is named by at least three different sources."),
    ("R403", '"The depth is right"', '"[Fact] The depth is right"'),
    (
        "R404",
        "depth: str | None = None",
        'depth: float | None = Field(None, description="e.g. 20-30 m")',
    ),
    (
        "R405",
        "return evaluator.get_summary()",
        "logger.info(datetime.now())\n    return evaluator.get_summary()",
    ),
]
# What else a planted fault needs to be there.
BESIDE = {
    "R205": (PROMPT, 'prompt="Extract the deepest lake (it is Dunmere)."'),
    "R306": (
        PROMPT + ", template_class=Lake",
        'prompt="List all lakes of the valley.", template_class=Lakes',
    ),
    "R405": ("from pydantic", "from datetime import datetime\nfrom pydantic"),
    "R204": ("from pydantic", "import re\nfrom pydantic"),
}
LEFT_ALONE = [
    (
        "R201",
        VERIFY,
        VERIFY.replace(", sources=lake.urls", "").replace("The lake", "The answer says"),
    ),
    (
        "R201",
        VERIFY,
        "await evaluator.verify(f\"'{lake.name}' and 'X' are the same lake.\", leaf)",
    ),
    ("R202", GATE, "if lake.urls:\n        logger.info('cited')"),
    ("R204", "lake.name and lake.urls", '"mere" in lake.name and lake.urls'),
    (
        "R304",
        LEAF,
        'if lake.depth:\n        leaf = evaluator.add_leaf("depth", "d")\n'
        '    else:\n        leaf = evaluator.add_leaf("depth", "d")',
    ),
    ("R305", LEAF, LEAF + '\n    evaluator.add_leaf("area", "d", status="failed")'),
    ("R401", "is {lake.depth} deep.", "lies between Dunford and Easton."),
    ("R402", "is {lake.depth} deep.", "is at least 300 m deep."),
    (
        "R404",
        "depth: str | None = None",
        "depth_m: float | None = None\n    depth: str = ''",
    ),
]


@pytest.fixture
def linted(tmp_path):
    """Lint a text as a file."""

    def lint(text, name="lake.py"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return lint_file(path)

    return lint


def test_the_sound_script_has_no_finding(linted):
    """The one in which faults are planted."""
    assert linted(SCRIPT) == []


@pytest.mark.parametrize(("rule", "old", "new"), PLANTED)
def test_a_planted_fault_is_found(linted, rule, old, new):
    """With the line on which it stands."""
    assert old in SCRIPT
    text = SCRIPT.replace(old, new.replace("\\\\", "\\"))
    if rule in BESIDE:
        text = text.replace(*BESIDE[rule])
    assert rule in {finding.number for finding in linted(text)}


@pytest.mark.parametrize(("rule", "old", "new"), LEFT_ALONE)
def test_what_only_looks_like_a_fault_is_left_alone(linted, rule, old, new):
    """The rule finds nothing."""
    assert old in SCRIPT
    assert rule not in {finding.number for finding in linted(SCRIPT.replace(old, new))}


def test_every_rule_has_a_planted_fault_and_a_line_in_the_docs():
    planted = [*PLANTED, *PLANTED_IN_RUBRICS]
    assert {rule for rule, *_ in planted} == RULES.keys()
    rows = re.findall(
        r"^\| (R\d+) \| (.*) \|$",
        (REPOSITORY / "docs/lint.md").read_text("utf-8"),
        re.MULTILINE,
    )
    assert dict(rows) == {
        rule.number: f"{rule.name} | {rule.reason} | {rule.cure}" for rule in RULES.values()
    }


def test_the_examples_have_no_finding():
    """Scripts and rubric files."""
    assert [finding for path in (*EXAMPLES, *RUBRICS) for finding in lint_file(path)] == []


RUBRIC = """\
task: lake
question: Which lake is the deepest of the valley?
extract:
  lake:
    ask: the deepest lake
    fields:
      name: its name
      depth: its depth
      urls: the addresses cited for it
root:
  children:
    - {id: given, desc: A lake is given, critical: true, present: [lake.name, lake.urls]}
    - id: depth
      desc: The depth is supported
      claim: The lake {lake.name} is {lake.depth} deep.
      sources: lake.urls
"""
PLANTED_IN_RUBRICS = [
    ("R101", "sources: lake.urls", "sources: lake.pages", 16),
    ("R104", "task: lake", "task: pond", 1),
    ("R201", "sources: lake.urls", "sources: answer", 16),
    ("R203", "sources: lake.urls", "sources: answer", 10),
    ("R205", "ask: the deepest lake", "ask: the deepest lake, Dunmere", 5),
    ("R301", ", critical: true", "", 10),
    (
        "R303",
        "critical: true, present: [lake.name, lake.urls]}",
        "present: [lake.name]}\n    - {id: b, desc: d, present: [lake.name]}",
        13,
    ),
    ("R401", "deep.", "deep and has a ferry.", 15),
    ("R402", "deep.", "deep, several say.", 15),
    ("R403", "desc: The depth", "desc: '[Fact] The depth", 14),
    (
        "R404",
        "depth: its depth",
        "depth: {ask: its depth with the unit, type: number}",
        8,
    ),
]


@pytest.mark.parametrize(("rule", "old", "new", "line"), PLANTED_IN_RUBRICS)
def test_a_planted_fault_of_a_rubric_file_is_found(linted, rule, old, new, line):
    """On its line."""
    text = RUBRIC.replace(old, new)
    if rule == "R403":
        text = text.replace("is supported", "is supported'")
    if rule == "R205":
        text += "    - {id: right, desc: d, equals: {field: lake.name, value: Dunmere, compare: text}}\n"
    assert linted(RUBRIC, "lake.yaml") == []
    assert (rule, line) in {(finding.number, finding.line) for finding in linted(text, "lake.yaml")}


def test_a_rubric_file_gets_the_advice_of_rubric_files(linted):
    text = RUBRIC.replace("deep.", "deep, several say.")
    text = text.replace("sources: lake.urls", "sources: answer")
    found = linted(text.replace(", critical: true", ""), "lake.yaml")
    cures = " ".join(finding.rule.cure for finding in found)
    assert "sources=" not in cures and "in the script" not in cures
    assert "name a field of addresses as sources" in cures
    of_script = linted(SCRIPT.replace(", sources=lake.urls", ""))
    shown = [rule.cure for rule in rules_of([*found, *of_script])]
    assert RULES["R201"].cure in shown
    assert RULES["R201"].of_rubric_files().cure in shown


def test_comments_leave_findings_out(linted):
    """On the line or above it; of this rule or of all."""
    for comment in (
        "# lint: ignore[R402]",
        "# lint: ignore",
        "# lint: ignore[R401, R402]",
    ):
        text = SCRIPT.replace("deep.", "deep, clearly.")
        assert [finding.number for finding in linted(text)] == ["R402"]
        assert linted(text.replace("sources=lake.urls)", f"sources=lake.urls)  {comment}")) == []
        assert (
            linted(
                text.replace(
                    "    await evaluator.verify",
                    f"    {comment}\n    await evaluator.verify",
                )
            )
            == []
        )
    assert (
        linted(text.replace("sources=lake.urls)", "sources=lake.urls)  # lint: ignore[R201]")) != []
    )


@pytest.mark.parametrize(
    "content",
    [
        *(
            b"",
            b"\x00",
            b"\xff\xfe",
            b"# coding: nonsense\nx = 1",
            b"x = " + b"(" * 3000 + b")" * 3000,
        ),
        b"def evaluate_answer(): " + b"-" * 5000 + b"1",
        b"async def evaluate_answer():\n"
        + b"\n".join(b" " * n + b"if x:" for n in range(1, 90))
        + b" pass",
        b"evaluator.verify(*a, **b)\nevaluator.add_leaf()\nevaluator.extract()\nevaluator.batch_verify([()])",
        b"x = x\ny = [y for y in y]\nevaluator.verify(x, y, x)\na = b\nb = a\nevaluator.verify(a, None, a)",
    ],
)
def test_no_script_stops_it(tmp_path, content):
    """Whatever a file holds, there are findings at most."""
    path = tmp_path / "odd.py"
    path.write_bytes(content)
    assert all(finding.number in RULES for finding in lint_file(path))


def test_the_command_lints_the_folder_of_scripts(tmp_path, monkeypatch):
    """Helper modules are none; formats for people, programs and pull requests; a status for CI."""
    folder = tmp_path / "eval_scripts/mine"
    folder.mkdir(parents=True)
    (folder / "lake.py").write_text(SCRIPT.replace(", sources=lake.urls", ""), encoding="utf-8")
    (folder / "words.py").write_text("WORDS = 'deep'\n", encoding="utf-8")
    (folder / "lake_too.yaml").write_text(
        RUBRIC.replace("task: lake", "task: lake_too"), encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    assert [path.name for path in task_files(Path("eval_scripts"))] == [
        "lake.py",
        "lake_too.yaml",
    ]
    outcome = call(main, "lint")
    assert outcome.returncode == 0
    assert (
        "eval_scripts/mine/lake.py:19: R201 claim about the world without sources: The lake {} is {} deep."
    ) in outcome.stdout.splitlines()
    assert "2 files, 2 findings." in outcome.stdout
    assert call(main, "lint", "--strict").returncode == 1
    first = json.loads(call(main, "lint", "--format", "json").stdout)[1]
    assert (first["line"], first["rule"], first["cure"]) == (
        19,
        "R201",
        RULES["R201"].cure,
    )
    github = call(main, "lint", "--format", "github", "eval_scripts/mine/lake.py").stdout
    assert "::warning file=eval_scripts/mine/lake.py,line=19,title=R201 claim about" in github
    missing = call(main, "lint", "none.py")
    assert (missing.returncode, "no file none.py" in missing.stderr) == (2, True)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "R101 does not parse: the file is empty"),
        (b"\n \n", "R101 does not parse: the file is empty"),
        (b"\0" * 9, "R101 does not parse: source code string cannot contain null"),
        (SCRIPT.encode("utf-16-le"), "R101 does not parse: source code string"),
    ],
)
def test_a_damaged_script_of_a_folder_is_named(tmp_path, content, line):
    """It may be one that was lost while it was written; the empty file of a package is none."""
    folder = tmp_path / "eval_scripts/mine"
    (folder / "words").mkdir(parents=True)
    (folder / "words/__init__.py").touch()
    (folder / "lake.py").write_bytes(content)
    outcome = call(main, "lint", tmp_path)
    assert outcome.returncode == 1
    assert f"{folder / 'lake.py'}:1: {line}" in outcome.stdout
    assert "1 file, 1 finding." in outcome.stdout


@pytest.mark.parametrize(
    ("name", "text"),
    [("lake.py", SCRIPT + ")"), ("lake.yaml", "task: [lake")],
)
def test_a_file_that_does_not_parse_is_an_error(tmp_path, name, text):
    """Without ``--strict`` too: no other rule could look at it."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    outcome = call(main, "lint", path)
    assert outcome.returncode == 1
    assert "R101 does not parse" in outcome.stdout
    github = call(main, "lint", "--format", "github", path)
    assert (github.returncode, github.stdout.startswith("::error ")) == (1, True)
