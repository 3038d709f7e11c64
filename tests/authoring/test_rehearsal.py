"""Rehearsals: tasks tried without a judge."""

import json
import re
from xml.etree import ElementTree

import pytest
from projects import REPOSITORY
from pydantic import BaseModel
from servers.judge_server import JudgeServer, prompt_text

from mind2web2 import CacheFileSys
from mind2web2.authoring.cases import read_case
from mind2web2.authoring.plausible import Filling, filled
from mind2web2.authoring.rehearsal import RehearsalPlan, rehearse_task
from mind2web2.authoring.structure import JudgePrice
from mind2web2.cli import main

EXAMPLES = REPOSITORY / "examples" / "rubrics" / "example"
QUESTION = "Which museum in Ottermoss is the oldest? Name two museums."
HEAD = """
import logging
from pydantic import BaseModel, Field
from mind2web2 import Evaluator

class Museum(BaseModel):
    name: str | None = None
    year: str | None = None
    urls: list[str] = Field(default_factory=list)

class Museums(BaseModel):
    museums: list[Museum] = Field(default_factory=list)

async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger):
    evaluator = Evaluator()
    root = evaluator.initialize("museums", client=client, answer=answer, global_cache=cache)
    found = await evaluator.extract("Extract.", Museums)
    museums = (found.museums + [Museum()] * 2)[:2]
    for number, museum in enumerate(museums):
        part = evaluator.add_parallel(f"museum_{number}", "A museum", parent=root)
        evaluator.add_custom_node(museum.name and museum.urls, f"given_{number}", "given", parent=part)
        leaf = evaluator.add_leaf(f"right_{number}", "right", parent=part)
        await evaluator.verify(f"{museum.name} opened in {museum.year}.", leaf, museum.urls)
    FAULT
    return evaluator.get_summary()
"""
# What is planted, in place of which line, and how it is named.
FAULTS = {
    "a word of the answer": (
        "FAULT",
        'evaluator.add_custom_node("museum" in answer, "says", "x", parent=root, critical=False)',
        ("points for nothing", "says"),
    ),
    "a claim that is judged from the answer": (
        "FAULT",
        'leaf = evaluator.add_leaf("alone", "x", parent=root)\n'
        '    await evaluator.verify(f"{museums[0].name} is a museum.", leaf)',
        ("points for nothing", "alone"),
    ),
    "a leaf that is not judged": (
        "FAULT",
        'evaluator.add_leaf("unjudged", "x", parent=root)',
        ("never judged", "unjudged"),
    ),
    "a condition twice": (
        "FAULT",
        'evaluator.add_custom_node(museums[0].year, "one", "x", parent=root)\n'
        '    evaluator.add_custom_node(museums[0].year, "two", "x", parent=root)',
        ("twins", "one"),
    ),
    "a claim twice": (
        "FAULT",
        'leaf = evaluator.add_leaf("again", "x", parent=root)\n'
        "    it = museums[0]\n"
        '    await evaluator.verify(f"{it.name} opened in {it.year}.", leaf, it.urls)',
        ("twins", "again"),
    ),
    "a condition that always holds": (
        "FAULT",
        'evaluator.add_custom_node(museums is not None, "always", "x", parent=root)',
        ("always true", "always"),
    ),
    "a field for nothing": (
        "class Museums(BaseModel):",
        "class Museums(BaseModel):\n    note: str | None = None",
        ("unused field", "note"),
    ),
    "items that may be missing": (
        "museums = (found.museums + [Museum()] * 2)[:2]",
        "museums = found.museums[:2]",
        ("missing items are free", "museums"),
    ),
    "no gate before the sources": (
        "museum.name and museum.urls",
        "museum.name",
        ("page not needed", "right_0"),
    ),
    "a verdict that the script sets": (
        "FAULT",
        'branch = evaluator.add_sequential("branch", "x", parent=root, critical=True)\n'
        '    evaluator.add_custom_node(museums[0].year, "first", "x", parent=branch)\n'
        '    idle = evaluator.add_leaf("idle", "x", parent=branch, critical=True)\n'
        '    await evaluator.verify("Both are museums.", idle, museums[0].urls)\n'
        '    idle.score, idle.status = 1.0, "passed"',
        ("always true", "idle"),
    ),
    "a score that the script sets": (
        "FAULT",
        'half = evaluator.add_leaf("half", "x", parent=root)\n    half.score = 0.5',
        ("no full score", "half"),
    ),
    "a score and a status that the script sets": (
        "FAULT",
        'half = evaluator.add_leaf("half", "x", parent=root)\n'
        '    half.score, half.status = 0.5, "partial"',
        ("no full score", "half"),
    ),
    "a score that passes and is too low": (
        "FAULT",
        'half = evaluator.add_leaf("half", "x", parent=root)\n'
        '    half.score, half.status = 0.5, "passed"',
        ("no full score", "half"),
    ),
    "a final score of the script's own": (
        "    return evaluator.get_summary()",
        '    return {**evaluator.get_summary(), "final_score": 0.5}',
        ("no full score", "returns another score"),
    ),
    "an error on missing values": (
        "FAULT",
        "found.museums[0].name.lower()",
        ("script failed", "IndexError"),
    ),
}


def plan(folder, script, **settings):
    """Return the plan of a task with a script or rubric file, and cases beside it."""
    return RehearsalPlan(
        script.stem,
        script,
        QUESTION,
        folder / "rehearsals" / script.stem,
        JudgePrice("o4-mini"),
        **settings,
    )


def script(folder, old="FAULT", new="pass"):
    """Return a task's script with a line changed."""
    path = folder / "museums.py"
    text = HEAD.replace(old, new)
    path.write_text(text.replace("FAULT", "pass"), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_named(tmp_path, name):
    """With the leaf or field that is at fault."""
    old, new, (kind, place) = FAULTS[name]
    report = rehearse_task(plan(tmp_path, script(tmp_path, old, new)))
    assert [f for f in report.findings if f.kind == kind and place in f.message], report.findings


def test_a_sound_script_has_no_finding(tmp_path):
    """The one that the faults are planted in."""
    report = rehearse_task(plan(tmp_path, script(tmp_path)))
    assert report.findings == []
    assert report.structure.leaves == 4
    assert report.structure.longest_chain == 3
    assert report.structure.gates == {"given_0": 0.5, "given_1": 0.5}


class Opening(BaseModel):
    """A template whose fields are all required."""

    year: int | None
    floors: int
    urls: list[str]


@pytest.mark.parametrize("name", ["year", "floors"])
def test_an_empty_required_field_is_null(name):
    filling = Filling(empty=frozenset({f"opening.{name}"}))
    opening = filled(Opening, "opening", filling)
    expected = {"year": 2019, "floors": 3, "urls": ["https://quince.example/urls"]}
    assert vars(opening) == expected | {name: None}


SOUND = [
    *sorted(EXAMPLES.glob("*.yaml")),
    *sorted((REPOSITORY / "eval_scripts" / "example").glob("*.py")),
]


@pytest.mark.parametrize("path", SOUND, ids=lambda path: path.name)
def test_the_examples_have_no_findings(tmp_path, path):
    """Worthless answers get nothing; what only a case can show is said."""
    report = rehearse_task(plan(tmp_path, path))
    assert report.findings == []
    scores = report.structure.scores
    assert [scores[name] for name in list(scores)[1:5]] == [0, 0, 0, 0]
    assert report.structure.unshown == (
        ("total_adds_up",) if path.name == "museum_saturday.py" else ()
    )


def project(folder, *names):
    """Return a folder with rubric files, and a perfect answer to the one about walks."""
    scripts = folder / "eval_scripts" / "own"
    scripts.mkdir(parents=True)
    for name in names:
        (scripts / name).write_bytes((EXAMPLES / name).read_bytes())
    cases = folder / "rehearsals" / "step_free_walks"
    cases.mkdir(parents=True)
    walks = [
        {
            "name": name,
            "length": length,
            "start": "the mill",
            "waymark": "a red wheel",
            "urls": [f"https://w.example/{name[0]}"],
        }
        for name, length in (
            ("Reed Loop", "3 km"),
            ("Millrace Path", "2 km"),
            ("Bittern Walk", "1 km"),
        )
    ]
    lines = [
        f"- **{walk['name']}**, {walk['length']} ([page]({walk['urls'][0]}))" for walk in walks
    ]
    header = json.dumps({"expect": 1, "extract": {"walks": walks}})
    (cases / "perfect.md").write_text(
        f"---\n{header}\n---\n\n# Walks\n\n" + "\n".join(lines), encoding="utf-8"
    )
    return cases


def test_variants_of_a_perfect_answer(tmp_path, monkeypatch, capsys):
    """They are written with today's scores, which a later change of the rubric is held against."""
    monkeypatch.chdir(tmp_path)
    cases = project(tmp_path, "step_free_walks.yaml")
    assert (
        main(
            [
                "rehearse",
                "step_free_walks",
                "--write_cases",
                "--write_golden",
                "--strict",
            ]
        )
        == 0
    )
    shown = capsys.readouterr().out
    expected = {
        "without_walks_3": 0.67,
        "wrong_walks_name": 0.67,
        "wrong_walks_length": 0.89,
    }
    expected |= {"wrong_page": 0, "no_citations": 0, "other_formatting": 1}
    for name, score in expected.items():
        assert f"case {name}: expected {score:.2f}, got {score:.2f}" in shown
        assert (cases / f"{name}.md").is_file()
    assert "https" not in (cases / "no_citations.md").read_text(encoding="utf-8")
    assert (
        "Bittern"
        not in (cases / "without_walks_3.md").read_text(encoding="utf-8").partition("# Walks")[2]
    )
    rubric = tmp_path / "eval_scripts" / "own" / "step_free_walks.yaml"
    rubric.write_text(
        rubric.read_text(encoding="utf-8").replace("is {item.length} long", "is a walk"),
        encoding="utf-8",
    )
    assert main(["rehearse", "--strict", "--junit", "found.xml", "--json"]) == 1
    [report] = json.loads(capsys.readouterr().out)
    differing = {case["name"]: case["differs"] for case in report["cases"] if case["differs"]}
    assert differing == {"wrong_walks_length": "every leaf passed"}
    suite = ElementTree.parse(tmp_path / "found.xml").find("testsuite")
    assert suite.get("failures") == str(len(report["findings"]))


def test_the_price_is_that_of_the_settings_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    project(tmp_path, "step_free_walks.yaml")
    settings = 'judge_model = "own-judge"\n'
    price = '[prices."own-judge"]\ninput = 1000\noutput = 0\n'
    for text, expected in (
        (settings, "; the price of own-judge is unknown (mind2web2.toml can state it)"),
        (settings + price, " an answer by own-judge"),
    ):
        (tmp_path / "mind2web2.toml").write_text(text, encoding="utf-8")
        assert main(["rehearse"]) == 0
        shown = capsys.readouterr().out.splitlines()[0]
        assert shown.endswith(expected), shown
    [dollars] = re.findall(r"about \$([\d.]+) an answer", shown)
    # Some twenty judgments of 4,000 tokens and more, at a tenth of a cent a token.
    assert 80 < float(dollars) < 300


def test_scripts_find_the_helpers_of_the_command(tmp_path, monkeypatch, capsys):
    """Rehearsals run in processes of their own, with the import path of the command."""
    monkeypatch.chdir(tmp_path)
    scripts = tmp_path / "eval_scripts" / "own"
    scripts.mkdir(parents=True)
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "rehearsal_helper.py").write_text("NAME = 'x'", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "helpers"))
    text = HEAD.replace("FAULT", "pass")
    (scripts / "museums.py").write_text(f"import rehearsal_helper\n{text}", encoding="utf-8")
    assert main(["rehearse", "--strict"]) == 0
    assert "museums: 4 leaves" in capsys.readouterr().out


def test_a_tree_that_changes_is_named_by_its_first_leaf(tmp_path, monkeypatch, capsys):
    """Even where the score stays."""
    monkeypatch.chdir(tmp_path)
    project(tmp_path, "step_free_walks.yaml")
    assert main(["rehearse", "step_free_walks", "--write_golden"]) == 0
    rubric = tmp_path / "eval_scripts" / "own" / "step_free_walks.yaml"
    text = rubric.read_text(encoding="utf-8").replace("walk_{number}_start", "walk_{number}_begins")
    rubric.write_text(text, encoding="utf-8")
    assert main(["rehearse", "step_free_walks", "--strict"]) == 1
    assert "walk_1_begins: kept no such leaf, now passed" in capsys.readouterr().out


WRONG_HEADERS = {
    "expct: 1": "line 2, expct: unknown field 'expct': did you mean 'expect'?",
    "expect: 2": "line 2, expect: should be less than or equal to 1, not 2",
    "expect: 1\nfacts:\n  - {clam: x}": "line 4, facts[0].clam: unknown field 'clam': did you mean 'claim'?",
    "expect: 1\nextract: {walks: 3}": "line 3, extract.walks: should be a list, not 3",
    "expect: 1\nextract:\n  walk: []": "line 4, extract.walk: no field 'walk': did you mean 'walks'?",
    "expect: 1\nextract:\n  walks:\n  - {nmae: x}": "line 5, extract.walks[0].nmae: no field 'nmae': did",
    "expect: 1\nleaves: {walk_1_shot: failed}": "leaves: no leaf 'walk_1_shot': did you mean 'walk_1_short'?",
    "expect: [": "no proper YAML",
    "": "'expect' is missing",
}


@pytest.mark.parametrize("header", WRONG_HEADERS)
def test_a_case_that_is_wrong_costs_no_other(tmp_path, header):
    """File, line and field are named; structure and the other cases are rehearsed."""
    cases = project(tmp_path, "step_free_walks.yaml")
    text = f"---\n{header}\n---\n\nReed Loop"
    (cases / "another.md").write_text(text, encoding="utf-8")
    report = rehearse_task(plan(tmp_path, EXAMPLES / "step_free_walks.yaml"))
    perfect, another = sorted(report.cases, key=lambda case: case.name != "perfect")
    assert (perfect.got, perfect.differs) == (1, None)
    assert WRONG_HEADERS[header] in another.differs
    assert report.structure.leaves == 18
    [finding] = report.findings
    assert finding.kind == "case" and "another" in finding.message


def test_a_case_may_come_from_windows(tmp_path):
    """With its line breaks and a byte order mark."""
    path = tmp_path / "perfect.md"
    path.write_bytes("\ufeff---\r\nexpect: 0.5\r\n---\r\n\r\nReed Loop\r\n".encode())
    case = read_case(path)
    assert (case.header.expect, case.answer) == (0.5, "Reed Loop\n")


@pytest.mark.parametrize("broken", ["step_free_walks.yaml", "another.md"])
def test_what_cannot_be_rehearsed_is_an_error(tmp_path, monkeypatch, capsys, broken):
    """Without ``--strict`` too, in contrast to a finding."""
    monkeypatch.chdir(tmp_path)
    cases = project(tmp_path, "step_free_walks.yaml")
    assert main(["rehearse"]) == 0
    scripts = tmp_path / "eval_scripts" / "own"
    path = (scripts if broken.endswith(".yaml") else cases) / broken
    path.write_text("---\nexpect: [\n---\n", encoding="utf-8")
    assert main(["rehearse"]) == 1
    assert broken in capsys.readouterr().out


def test_without_a_sound_perfect_case_others_need_facts(tmp_path):
    """They say so; the broken one names its line."""
    cases = project(tmp_path, "step_free_walks.yaml")
    (cases / "perfect.md").write_text("---\nexpect: x\n---\n", encoding="utf-8")
    (cases / "other.md").write_text("---\nexpect: 0\n---\n", encoding="utf-8")
    (cases / "facts.md").write_text("---\nexpect: 0\nfacts: []\n---\n", encoding="utf-8")
    report = rehearse_task(plan(tmp_path, EXAMPLES / "step_free_walks.yaml"))
    found = {case.name: case.differs for case in report.cases}
    assert "line 2, expect: should be a number, not 'x'" in found["perfect"]
    assert "has no facts: give some, or a sound" in found["other"]
    assert found["facts"] is None


def test_cases_state_facts_and_leaves(tmp_path):
    """Claims by pattern, with pages that are missing."""
    cases = project(tmp_path, "step_free_walks.yaml")
    text = (cases / "perfect.md").read_text(encoding="utf-8").partition("\n---\n")
    header = json.loads(text[0].removeprefix("---\n"))
    facts = [
        "*shorter than*",
        "*step-free*",
        {"claim": "*long.", "page": "https://w.example/R"},
    ]
    header |= {"expect": 1 / 9, "facts": facts, "missing_pages": ["*/B"]}
    header["leaves"] = {
        "walk_1_length": "passed",
        "walk_2_length": "failed",
        "walk_3_short": "failed",
    }
    (cases / "facts.md").write_text(f"---\n{json.dumps(header)}\n---\n\nx", encoding="utf-8")
    report = rehearse_task(plan(tmp_path, EXAMPLES / "step_free_walks.yaml"))
    assert [(case.name, case.differs) for case in report.cases] == [
        ("perfect", None),
        ("facts", None),
    ]


def test_a_real_judge_decides_the_same_cases(tmp_path, monkeypatch, capsys):
    """Its verdicts are held against the same expectations; pages come from a cache."""
    monkeypatch.chdir(tmp_path)
    cases = project(tmp_path, "step_free_walks.yaml")
    header = json.loads((cases / "perfect.md").read_text(encoding="utf-8").splitlines()[1])
    for walk in header["extract"]["walks"]:
        CacheFileSys(tmp_path / "pages" / "step_free_walks").put_web(
            walk["urls"][0], "A walk.", None
        )

    def reply(body):
        text = prompt_text(body)
        if "what to extract" in text:
            return json.dumps(header["extract"])
        return json.dumps(
            {
                "reasoning": "r",
                "result": "in Ottermoss is step-free" not in text,
                "quote": "",
            }
        )

    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with JudgeServer(reply) as server:
        options = ["--judge_model", "judge-1", "--judge_base_url", server.url]
        command = ["rehearse", "step_free_walks", *options, "--pages"]
        assert main([*command, "pages"]) == 0
        shown = capsys.readouterr().out
        assert "case perfect: expected 1.00, got 0.00" in shown
        assert "first leaf that did not pass: walk_1_step_free" in shown
        missing = ["empty", "--missing_pages", "unavailable", "--allow_private_network"]
        assert main([*command, *missing]) == 0
    reason = "https://w.example/R is unavailable: not in the cache"
    assert reason in capsys.readouterr().out
