"""Rehearsals: tasks tried without a judge."""

import json
import re
import shutil
from xml.etree import ElementTree

import pytest
from projects import REPOSITORY
from servers.judge_server import JudgeServer, prompt_text

from mind2web2 import CacheFileSys
from mind2web2.cli import main
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.text import number
from mind2web2_authoring.cases import read_case
from mind2web2_authoring.rehearsal import RehearsalPlan, rehearse_task

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
    seen = set()
    for number, museum in enumerate(museums):
        part = evaluator.add_parallel(f"museum_{number}", "A museum", parent=root)
        given = bool(museum.name and museum.urls and museum.name not in seen)
        evaluator.add_custom_node(given, f"given_{number}", "given", parent=part, critical=True)
        seen.add(museum.name)
        leaf = evaluator.add_leaf(f"right_{number}", "The year is right", parent=part)
        await evaluator.verify(f"{museum.name} opened in {museum.year}.", leaf, museum.urls)
    FAULT
    return evaluator.get_summary()
"""
PART = '"x", parent=root'
# The planted line, the line that it replaces, and the name of the finding.
FAULTS = {
    "a word of the question": (
        "FAULT",
        f'evaluator.add_custom_node("museum" in answer, "says", {PART}, critical=False)',
        ("points for nothing", "says"),
    ),
    "a claim that is judged from the answer": (
        "FAULT",
        f'leaf = evaluator.add_leaf("alone", {PART})\n'
        '    await evaluator.verify(f"{museums[0].name} is a museum.", leaf)',
        ("sources dropped", "alone"),
    ),
    "a leaf that is not judged": (
        "FAULT",
        f'evaluator.add_leaf("unjudged", {PART})',
        ("never judged", "unjudged"),
    ),
    "a bound that is turned": (
        "FAULT",
        'evaluator.add_custom_node(int(museums[0].year or 0) > 1990, "old", "Opened before 1990")',
        ("right answer fails", "old"),
    ),
    "a test that a missing value passes": (
        "FAULT",
        f'evaluator.add_custom_node(museums[0].year in (None, "2019"), "known", {PART}, '
        "critical=False)",
        ("points for nothing", "known passes without museums.year"),
    ),
    "a misspelled argument": (
        "FAULT",
        f'evaluator.add_custom_node(bool(museums[0].year), "year", {PART}, critcal=True)',
        ("mistake", "critcal"),
    ),
    "a claim twice": (
        "FAULT",
        f'leaf = evaluator.add_leaf("again", {PART})\n'
        "    it = museums[0]\n"
        '    await evaluator.verify(f"{it.name} opened in {it.year}.", leaf, it.urls)',
        ("claim twice", "again"),
    ),
    "a condition that always holds": (
        "FAULT",
        f'evaluator.add_custom_node(museums is not None, "always", {PART})',
        ("gate without effect", "always"),
    ),
    "a value that no claim names": (
        "opened in {museum.year}.",
        "opened.",
        ("value ignored", "right_0"),
    ),
    "a claim without its value": (
        'year is right", parent=part)',
        'year is right", parent=part)\n'
        '        year = evaluator.add_leaf(f"museum_year_{number}", "x", parent=part)\n'
        '        await evaluator.verify(f"{museum.name} has a year.", year, museum.urls)',
        ("value ignored", "museum_year"),
    ),
    "items that may be missing": (
        "museums = (found.museums + [Museum()] * 2)[:2]",
        "museums = found.museums[:2]",
        ("missing items are free", "museums"),
    ),
    "no gate before the sources": (
        "museum.name and museum.urls and",
        "museum.name and",
        ("sources dropped", "right_0"),
    ),
    "a gate that is off": (
        "parent=part, critical=True)",
        "parent=part, critical=False)",
        ("points for nothing", "given_0"),
    ),
    "a gate upside down": (
        "museum.name and museum.urls and",
        "not museum.urls and",
        ("right answer fails", "given_0"),
    ),
    "the same museum twice": (
        " and museum.name not in seen",
        "",
        ("same item scores twice", "3 times"),
    ),
    "a final score of the script's own": (
        "    return evaluator.get_summary()",
        '    return {**evaluator.get_summary(), "final_score": 0.5}',
        ("right answer fails", "returns another score"),
    ),
    "an error on missing values": (
        "FAULT",
        "found.museums[0].name.lower()",
        ("script fails", "IndexError"),
    ),
}


def plan(folder, script, **settings):
    """Return the plan of a task with a script or rubric file, and cases beside it."""
    return RehearsalPlan(
        script.stem,
        script,
        QUESTION,
        folder / "rehearsals" / script.stem,
        RunSettings(judge_model="o4-mini"),
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
    old, new, (kind, place) = FAULTS[name]
    report = rehearse_task(plan(tmp_path, script(tmp_path, old, new)))
    found = [each for each in report.findings if each.kind == kind and place in each.message]
    assert found, report.findings
    assert re.match(r"museums.py(:\d+)?$", found[0].place)


def test_a_sound_script_has_no_finding(tmp_path):
    report = rehearse_task(plan(tmp_path, script(tmp_path)))
    assert (report.verdict, report.findings) == ("sound", ())
    assert (report.amounts.leaves, report.amounts.judgments) == (4, 5)


IN_STEPS = """
    class Names(BaseModel):
        names: list[str] = Field(default_factory=list)

    class Details(BaseModel):
        name: str | None = None
        day_number: int | None = None
        year: str | None = None
        urls: list[str] = Field(default_factory=list)

    names = (await evaluator.extract("The boats.", Names, "names")).names
    for n in range(2):
        name = names[n] if n < len(names) else None
        it = Details()
        if name:
            it = await evaluator.extract(f"Details of {name}.", Details, f"boat_{n}")
        part = evaluator.add_parallel(f"boat_{n}", "A boat", parent=root)
        given = bool(name and it.urls and it.year and name not in names[:n])
        evaluator.add_custom_node(given, f"boat_{n}_given", "given", parent=part, critical=True)
        recent = evaluator.add_leaf(f"boat_{n}_recent", "Since 2005", part, critical=True)
        await evaluator.verify(f"The year {it.year} is between 2005 and now.", recent)
        known = evaluator.add_leaf(f"boat_{n}_known", "Of the yard", part, critical=True)
        await evaluator.verify(f"'{name}' is a boat of Corrow and Netholm.", known)
        built = evaluator.add_leaf(f"boat_{n}_built", "The year is right", part)
        await evaluator.verify(f"This boat was built in {it.year}.", built, it.urls)
"""


def test_a_script_in_steps_of_extractions_has_no_finding(tmp_path):
    """Names that steer it, fields that no claim has, equal years, and a value that it knows."""
    report = rehearse_task(plan(tmp_path, script(tmp_path, "    FAULT", IN_STEPS)))
    assert (report.verdict, report.findings) == ("sound", ())


# Lines that others write, and no fault of these kinds.
HARMLESS = {
    "a leaf that is judged twice": (
        'leaf = evaluator.add_leaf("twice", "d", parent=root)\n'
        '    await evaluator.verify("The town has museums.", leaf)\n'
        '    await evaluator.verify("The page has museums.", leaf, "https://a.example")',
        "sources dropped",
    ),
    "a bonus for a claim that holds": (
        'if evaluator.find_node("right_0").score > 0.5:\n'
        f"        evaluator.add_custom_node(True, 'bonus', {PART}, critical=False)",
        "points for nothing",
    ),
    "a result without a tree": ("return {'final_score': 0.25}", "never judged"),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_line_that_is_no_fault_has_no_finding(tmp_path, name):
    line, kind = HARMLESS[name]
    report = rehearse_task(plan(tmp_path, script(tmp_path, "FAULT", line)))
    assert [each for each in report.findings if each.kind == kind] == []


def test_a_kind_of_finding_that_is_often_wrong_is_shown_with_v_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    project(tmp_path)
    path = tmp_path / "eval_scripts" / "own"
    script(path, "FAULT", f"evaluator.add_custom_node(True, 'open', {PART}, critical=True)")
    found = "gate without effect: passes on every answer, also on an empty one: open"
    for options, is_shown in (((), False), (("museums",), False), (("museums", "-v"), True)):
        main(["rehearse", *options])
        shown = capsys.readouterr().out
        assert ("look at" in shown, found in shown) == (True, is_shown)
        assert ("and 1 more: -v" in shown) is (options == ("museums",))


def test_a_script_that_runs_in_program_order_is_told(tmp_path):
    started = "__import__('threading').Thread(target=print).start()"
    assert rehearse_task(plan(tmp_path, script(tmp_path))).program_order == ""
    report = rehearse_task(plan(tmp_path, script(tmp_path, "FAULT", started)))
    assert report.program_order == "starts threads"


REFUSING = (
    f"""evaluator.add_custom_node(museums[0].name in NAMES, "known", {PART}, critical=True)"""
)


@pytest.mark.parametrize("names", ['{"Mill Museum"}', '{"Mill Museum".upper()}'])
def test_code_that_refuses_values_is_met_or_named(tmp_path, names):
    """Made-up values are tried that fit its constants.

    Without any that fit, the verdict cannot be told.
    """
    path = script(tmp_path, "FAULT", REFUSING)
    path.write_text(f"NAMES = {names}\n{path.read_text()}", encoding="utf-8")
    report = rehearse_task(plan(tmp_path, path))
    assert report.findings == ()
    if "upper" in names:
        assert report.verdict == "cannot tell"
        assert "the code of known refuses made-up values: write museums/perfect.md" in report.reason
    else:
        assert report.verdict == "sound"


def test_the_text_alone_is_read(tmp_path):
    path = script(tmp_path, "museum.urls)\n", "museum.urls\n")
    report = rehearse_task(plan(tmp_path, path, runs=False))
    assert (report.verdict, report.findings[0].kind) == ("faulty", "text")
    assert "cannot be used" in report.error
    report = rehearse_task(plan(tmp_path, script(tmp_path), runs=False))
    assert (report.verdict, report.findings) == ("cannot tell", ())


SOUND = [
    *sorted(EXAMPLES.glob("*.yaml")),
    *sorted((REPOSITORY / "eval_scripts" / "example").glob("*.py")),
]


@pytest.mark.parametrize("path", SOUND, ids=lambda path: path.name)
def test_the_examples_are_sound_with_their_perfect_answers(path):
    cases = REPOSITORY / "examples" / "rehearsals" / path.stem
    report = rehearse_task(
        RehearsalPlan(path.stem, path, QUESTION, cases, RunSettings(judge_model="o4-mini"))
    )
    assert (report.verdict, report.findings) == ("sound", ())


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
    monkeypatch.chdir(tmp_path)
    cases = project(tmp_path, "step_free_walks.yaml")
    assert main(["rehearse", "step_free_walks", "--write_cases", "--strict", "-v"]) == 0
    shown = capsys.readouterr().out
    expected = {"without_walks_3": 0.67, "wrong_walks_name": 0.67, "wrong_walks_length": 0.89}
    expected |= {"wrong_page": 0, "no_citations": 0}
    for name, score in expected.items():
        assert f"case {name}: expected {number(score)}, got {number(score)}" in shown
    assert "https" not in (cases / "no_citations.md").read_text(encoding="utf-8")
    _, _, text = (cases / "without_walks_3.md").read_text("utf-8").partition("# Walks")
    assert "Bittern" not in text
    rubric = tmp_path / "eval_scripts" / "own" / "step_free_walks.yaml"
    changed = rubric.read_text("utf-8").replace("is {item.length} long", "is a walk")
    rubric.write_text(changed, encoding="utf-8")
    assert main(["rehearse", "--strict", "--junit", "found.xml", "--json"]) == 1
    [report] = json.loads(capsys.readouterr().out)
    differing = {case["name"]: case["differs"] for case in report["cases"] if case["differs"]}
    assert differing == {"wrong_walks_length": "walk_1_length: expected failed, got passed"}
    assert "the same whatever length is" in report["findings"][0]["message"]
    suite = ElementTree.parse(tmp_path / "found.xml").find("testsuite")
    assert suite.get("failures") == str(len(report["findings"]))


def test_no_variant_is_written_before_the_perfect_answer_scores_1(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cases = project(tmp_path, "step_free_walks.yaml")
    perfect = cases / "perfect.md"
    perfect.write_text(perfect.read_text("utf-8").replace("Millrace Path", "Reed Loop"), "utf-8")
    assert main(["rehearse", "step_free_walks", "--write_cases"]) == 0
    assert "right answer fails: the right answer scores 0.67" in capsys.readouterr().out
    assert list(cases.iterdir()) == [perfect]


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
        assert main(["rehearse", "step_free_walks"]) == 0
        shown = capsys.readouterr().out.splitlines()[-2]
        assert shown.endswith(expected), shown
    [dollars] = re.findall(r"about \$([\d.]+) an answer", shown)
    # Some twenty judgments of 4,000 tokens and more, at a tenth of a cent a token.
    assert 80 < float(dollars) < 300


def test_scripts_may_lie_in_the_working_directory(tmp_path, monkeypatch, capsys):
    """The folder ``.`` gives their version no name."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(REPOSITORY / "examples/rubrics/example/step_free_walks.yaml", tmp_path)
    assert main(["rehearse", "--eval_scripts_root", "."]) == 0
    assert "1 task: " in capsys.readouterr().out


def test_a_file_that_is_not_there_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    project(tmp_path, "step_free_walks.yaml")
    assert main(["rehearse", "eval_scripts/own/gone.yaml"]) == 2
    error = "unknown task 'eval_scripts/own/gone.yaml'. Found: step_free_walks"
    assert error in capsys.readouterr().err


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
    assert "1 task: 1 sound" in capsys.readouterr().out


WRONG_HEADERS = {
    "expct: 1": "line 2, expct: unknown field 'expct': did you mean 'expect'?",
    "expect: 2": "line 2, expect: should be less than or equal to 1, not 2",
    "expect: 1\nfacts:\n  - {clam: x}": "line 4, facts[0].clam: unknown field 'clam': did you "
    "mean 'claim'?",
    "expect: 1\nextract: {walks: 3}": "line 3, extract.walks: should be a valid list, not 3",
    "expect: 1\nextract:\n  walk: []": "line 4, extract.walk: no field 'walk': did you mean "
    "'walks'?",
    "expect: 1\nextract:\n  walks:\n  - {nmae: x}": "line 5, extract.walks[0].nmae: no field "
    "'nmae': did",
    "expect: 1\nleaves: {walk_1_shot: failed}": "leaves.walk_1_shot: no leaf 'walk_1_shot': did you mean "
    "'walk_1_short'?",
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
    assert report.amounts.leaves == 18
    [finding] = report.findings
    assert finding.kind == "case" and "another" in finding.message


def test_a_case_may_come_from_windows(tmp_path):
    path = tmp_path / "perfect.md"
    path.write_bytes("\ufeff---\r\nexpect: 0.5\r\n---\r\n\r\nReed Loop\r\n".encode())
    case = read_case(path)
    assert (case.header.expect, case.answer) == (0.5, "Reed Loop\n")


@pytest.mark.parametrize("broken", ["step_free_walks.yaml", "another.md"])
def test_what_cannot_be_rehearsed_is_an_error(tmp_path, monkeypatch, capsys, broken):
    monkeypatch.chdir(tmp_path)
    cases = project(tmp_path, "step_free_walks.yaml")
    assert main(["rehearse"]) == 0
    scripts = tmp_path / "eval_scripts" / "own"
    path = (scripts if broken.endswith(".yaml") else cases) / broken
    path.write_text("---\nexpect: [\n---\n", encoding="utf-8")
    assert main(["rehearse"]) == 1
    assert broken in capsys.readouterr().out


def test_without_a_sound_perfect_case_others_need_facts(tmp_path):
    cases = project(tmp_path, "step_free_walks.yaml")
    (cases / "perfect.md").write_text("---\nexpect: x\n---\n", encoding="utf-8")
    (cases / "other.md").write_text("---\nexpect: 0\n---\n", encoding="utf-8")
    (cases / "facts.md").write_text("---\nexpect: 0\nfacts: []\n---\n", encoding="utf-8")
    report = rehearse_task(plan(tmp_path, EXAMPLES / "step_free_walks.yaml"))
    found = {case.name: case.differs for case in report.cases}
    assert "line 2, expect: should be a valid number" in found["perfect"]
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
        assert "case: perfect: expected 1, got 0" in shown
        assert "first leaf that did not pass: walk_1_step_free" in shown
        missing = ["empty", "--missing_pages", "unavailable", "--allow_private_network"]
        assert main([*command, *missing]) == 0
    reason = "unavailable: https://w.example/R"
    assert reason in capsys.readouterr().out
