"""Rubric files: what they say, and what their readers say about faults."""

import ast
import json
import re
from pathlib import Path

import pytest
from projects import REPOSITORY
from scripted_judge import ScriptedJudge

from mind2web2.scripts.load import load_eval_script, unload_eval_script
from mind2web2.scripts.rubric_reading import (
    ReadRubric,
    placeholders,
    rubric_schema,
)
from mind2web2.scripts.rubric_script import script_of
from mind2web2.scripts.yaml_lines import YamlFileError

EXAMPLES = REPOSITORY / "examples" / "rubrics" / "example"
MUSEUM = EXAMPLES / "museum_saturday.yaml"
SMALL = """\
task: lake
question: How deep is the lake?
extract:
  depth: the depth with its unit
  urls: the addresses cited for it
  fish:
    ask: the fish in the lake
    list: 2
    fields:
      name: its name
root:
  children:
    - id: deep
      desc: The depth is right
      claim: The lake is {depth} deep.
      sources: urls
"""

# The changed text, the new text, and the beginnings of the message: line, field and what to do.
FAULTS = [
    (
        "critical: true",
        "critcal: true",
        "line 36, root.children[0].critcal: unknown field",
        "'critical'?",
    ),
    (
        "present: tour_urls",
        "present: tour_url",
        "line 44, root.children[1].children[0].present",
        "'tour_urls'?",
    ),
    (
        "sources: timetable_urls",
        "sources: tour_start",
        "line 60,",
        "name a field of type urls",
    ),
    (
        "          sources: answer\n",
        "",
        "line 93, root.children[3].children[3]: the claim has no sources",
        "'answer'",
    ),
    ("{tour_start}", "{tour_begin}", "line 48,", "no field 'tour_begin': there is"),
    ("{tour_start}", "{tour_urls}", "line 48,", "addresses belong to sources"),
    ("{tour_start}", "{item.start}", "line 48,", "outside of for_each"),
    ("{tour_start}", "{}", "line 48,", "write {{ and }}"),
    (
        "type: integer",
        "type: int",
        "line 17, extract.crossing_minutes.type",
        "'integer'",
    ),
    ("id: tour_cited", "id: tour", "line 41,", "the id of another node, in line 38"),
    ("after: ferry_departure", "after: cost", "line 68,", "no earlier node 'cost'"),
    (
        "question: |",
        "questio: |",
        "line 2, question: 'question' is missing",
        "did you mean 'question'?",
    ),
    ("claim: The ferry's", "claim: 'x': The", "line 72: no proper YAML", "in quotes"),
    (
        "desc: A timetable is cited",
        "desc: a\n          desc: b",
        "line 55,",
        "stands twice, first in line 54",
    ),
    (
        "strategy: sequential",
        "strategy: serial",
        "line 32, root.strategy",
        "'parallel' or 'sequential'",
    ),
    (
        "compare: number, within",
        "compare: text, within",
        "line 100,",
        "compare: number",
    ),
    (
        "as HH:MM\n",
        "as HH:MM\n  model_x: a name\n",
        "line 13, extract.model_x",
        "choose another one",
    ),
    (
        "as HH:MM\n",
        "as HH:MM\n  class: a name\n",
        "line 13, extract.class",
        "choose another one",
    ),
    (
        "as HH:MM\n",
        "as HH:MM\n  str: a name\n",
        "line 13, extract.str",
        "choose another one",
    ),
    (
        "as HH:MM\n",
        "as HH:MM\n  x: {ask: a, page: 'https://x.example', list: 2, fields: {y: z}}\n",
        "line 13, extract.x.list",
        "give the group its parts",
    ),
    (
        "present: tour_urls",
        "present: tour_urls\n          votes: 3",
        "line 45,",
        "does not go with a leaf that code decides",
    ),
    (
        "sources: tour_urls",
        "sources: tour_urls\n          votes: 2",
        "line 50,",
        "must be an odd number",
    ),
    ("id: cost", "id: cost\n      claim: x", "line 75,", "does not go with a node with children"),
    ("id: cost", "id: cost\n      critical: true", "line 82,", "add critical: true"),
    (
        "id: cost",
        "id: cost\n      for_each: walks",
        "line 75,",
        "give a field 'list: N'",
    ),
    ("task: museum", "task: mill", "line 2, task", "give both the same name"),
    ("task: museum", "# \x00", "line 2: no proper YAML", "control characters"),
    ("task: museum", "x: &a [*a]\ntask: museum", "line 2,", "anchors and aliases"),
]


@pytest.mark.parametrize(("old", "new", "place", "cure"), FAULTS)
def test_an_error_names_file_line_field_and_cure(tmp_path, old, new, place, cure):
    text = MUSEUM.read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(YamlFileError) as raised:
        ReadRubric.parsed(text.replace(old, new, 1).encode(), tmp_path / "museum_saturday.yaml")
    message = str(raised.value)
    assert message.startswith(str(tmp_path / "museum_saturday.yaml"))
    assert place in message
    assert cure in message
    assert "\n" not in message


@pytest.mark.parametrize("name", ["museum_saturday", "library_facts", "step_free_walks"])
def test_the_written_script_is_proper_python(name):
    rubric = ReadRubric.at(EXAMPLES / f"{name}.yaml")
    tree = ast.parse(script_of(rubric))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    assert classes[-1].name
    assert "TASK_DESCRIPTION" in script_of(rubric)


async def tree_of(path, judge, cache=None, answer="The lake is deep."):
    """Return status by id, evaluated with a judge."""
    evaluate = load_eval_script(path)
    arguments = {
        "client": judge,
        "answer": answer,
        "agent_name": "bot",
        "answer_name": "answer_1",
    }
    result = await evaluate(**arguments, cache=cache, semaphore=None, logger=None)
    unload_eval_script(evaluate)
    root = result["eval_breakdown"][0]["verification_tree"]
    return {node["id"]: node["status"] for node in _below(root)}, result


def _below(node):
    yield node
    for child in node["children"]:
        yield from _below(child)


def written(folder, text):
    """Return a rubric file with a text."""
    path = folder / "lake.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "given",
    [
        {"depth": None, "urls": ["https://lake.example/"]},
        {"depth": "80 m", "urls": []},
        {"depth": " "},
    ],
)
async def test_an_empty_value_fails_its_leaf_unasked(tmp_path, given):
    """A placeholder as well as a source; the evidence names the field."""
    judge = ScriptedJudge(lambda question: question.template(**given))
    statuses, result = await tree_of(written(tmp_path, SMALL), judge)
    assert statuses == {"root": "failed", "deep": "failed"}
    assert len(judge.questions) == 1
    leaf = result["eval_breakdown"][0]["verification_tree"]["children"][0]
    missing = "depth" if not (given["depth"] or "").strip() else "urls"
    assert leaf["evidence"]["reason"] == f"not judged, because the answer gives no {missing}"


ODD_IDS = [
    "any",
    "enumerate",
    "Evaluator",
    "TASK_ID",
    "Answer",
    "CO\u2082",
    "co2",
    "m\u00b2",
    "None",
]


async def test_any_id_names_a_node(tmp_path):
    """The script that equals the file has names of its own for its variables."""
    leaves = [f"    - {{id: {name}, desc: d, claim: deep, sources: answer}}\n" for name in ODD_IDS]
    choice = "    - {id: last, desc: d, any_of: [{present: depth}]}\n"
    each = "    - {id: 'f{number}', desc: d, for_each: fish, present: item.name}\n"
    text = SMALL.partition("    - id: deep")[0] + "".join([*leaves, choice, each])
    fish = [{"name": "pike"}, {"name": "carp"}]
    filled = {"depth": "80 m", "urls": [], "fish": fish, "reasoning": "r", "result": True}
    judge = ScriptedJudge(lambda question: question.template(**filled))
    statuses, _ = await tree_of(written(tmp_path, text), judge)
    assert statuses == dict.fromkeys(["root", *ODD_IDS, "last", "f1", "f2"], "passed")


def test_each_page_has_a_question_of_its_own(tmp_path):
    """Also if the names of the groups differ by case alone."""
    group = "  {}: {{ask: {}, page: https://lake.example/f, fields: {{depth: the depth}}}}\n"
    groups = "".join(group.format(name, f"ask {name}") for name in ("figure", "Figure"))
    script = script_of(ReadRubric.at(written(tmp_path, SMALL.replace("root:", f"{groups}root:"))))
    constants = re.findall(r"^(EXTRACT_\w+) = ", script, re.MULTILINE)
    assert re.findall(r"prompt=(\w+)", script) == constants
    assert len(set(constants)) == 3


async def test_a_group_from_a_page_may_be_asked_for_as_a_whole(tmp_path):
    text = SMALL.replace(
        "root:",
        "  figure:\n    ask: a line\n    page: https://lake.example/f\n    fields: {depth: the "
        "depth}\nroot:",
    )
    text = text.replace(
        "      claim: The lake is {depth} deep.\n      sources: urls",
        "      present: figure",
    )
    judge = ScriptedJudge(lambda question: question.template(depth="80 m"))
    statuses, _ = await tree_of(written(tmp_path, text), judge)
    # Without a cache the page is unavailable, and the group empty.
    assert statuses["deep"] == "failed"


CHECKS = """\
    - {id: first, desc: a, present: [depth, fish]}
    - {id: same, desc: b, equals: {field: depth, value: 80 M., compare: text}}
    - {id: other, desc: c, distinct: fish.name, tags: kinds}
    - id: fish_{number}
      desc: d
      for_each: fish
      children:
        - {id: "fish_{number}_named", desc: "e{number} {{}}", present: item.name}
        - {id: "fish_{number}_swims", desc: f, claim: It swims., sources: answer}
"""


@pytest.mark.parametrize(
    ("fish", "passed"),
    [
        (
            ["pike", "carp"],
            {"first", "same", "other", "fish_1_named", "fish_1_swims", "fish_2_swims"},
        ),
        (["pike", "Pike", "carp"], {"first", "same", "fish_1_swims", "fish_2_swims"}),
        ([None, "pike"], {"first", "same", "fish_1_named", "fish_1_swims"}),
        ([], {"same"}),
    ],
)
async def test_leaves_without_a_claim_and_leaves_for_each_item(tmp_path, fish, passed):
    """Items beyond the number do not count; the leaves of missing ones fail."""
    text = SMALL[: SMALL.index("    - id: deep")] + CHECKS
    filled = {"depth": "80 m", "fish": [{"name": name} for name in fish]}
    judge = ScriptedJudge(
        lambda q: q.template(**filled) if q.template.__name__ == "Answer" else _yes(q)
    )
    statuses, result = await tree_of(written(tmp_path, text), judge)
    leaves = {
        name: status
        for name, status in statuses.items()
        if name not in ("root", "fish_1", "fish_2")
    }
    assert {name for name, status in leaves.items() if status == "passed"} >= passed
    assert "initialized" not in leaves.values()
    assert [
        node.get("tags") for node in _below(result["eval_breakdown"][0]["verification_tree"])
    ].count(["kinds"]) == 1


EQUALS = (
    SMALL[: SMALL.index("root:")]
    + """\
root:
  children:
    - {id: right, desc: a, equals: {field: FIELD, value: VALUE, compare: COMPARE}}
"""
)


def equals_file(value, compare, field="depth"):
    """Return a rubric file that compares one extracted field."""
    text = EQUALS.replace(
        "  fish:",
        "  depth_m: {ask: a, type: number}\n  is_deep: {ask: b, type: yes_no}\n  fish:",
    )
    text = text.replace("FIELD", field).replace("VALUE", value)
    return text.replace("COMPARE", compare)


@pytest.mark.parametrize(
    ("value", "compare", "field", "found"),
    [
        *[
            (text, compare, "depth", text)
            for text in (
                "7:30",
                "3.10",
                "007",
                "0x1F",
                "1_000",
                "NO",
                "yes",
                "1911",
                "0.00001",
                "true",
            )
            for compare in ("exact", "text")
        ],
        ("2026-07-01", "date", "depth", "1 July 2026"),
        ("010", "number", "depth", "10 m"),
        ("3.10", "exact", "depth_m", 3.1),
        ("-5", "number", "depth", "\u22125 m"),
        ("\u22125", "number", "depth_m", -5),
        ("yes", "exact", "is_deep", True),
        ("false", "text", "is_deep", False),
    ],
)
async def test_a_value_means_what_its_author_wrote(tmp_path, value, compare, field, found):
    judge = ScriptedJudge(lambda question: question.template(**{field: found}))
    path = written(tmp_path, equals_file(value, compare, field))
    statuses, _ = await tree_of(path, judge)
    assert statuses["right"] == "passed"


@pytest.mark.parametrize(
    ("value", "cure"),
    [
        (".nan", "'.nan' is not a number"),
        (".inf", "'.inf' is not a number"),
        ("7:30", "'7:30' is not a number"),
        ("1e3", "'1e3' is not a number"),
        ("null", "put a value such as null or ~ in quotes"),
        ("~", "put a value such as null or ~ in quotes"),
        ("1, within: .inf", "within"),
        ("1, within: -1", "within"),
    ],
)
def test_a_value_that_no_number_equals_is_refused(value, cure):
    with pytest.raises(YamlFileError, match=re.escape(cure)):
        ReadRubric.parsed(equals_file(value, "number").encode(), Path("lake.yaml"))


@pytest.mark.parametrize(
    ("line", "cure"),
    [
        (
            "equals: {field: depth, value: '', compare: text}",
            "an empty value never passes",
        ),
        ("equals: {field: is_deep, value: maybe, compare: text}", "neither yes nor no"),
        ("claim: x, sources: answer, votes: true", "should be a valid integer, not true"),
        ("claim: 2026, sources: answer", "should be a valid string, not 2026"),
    ],
)
def test_a_leaf_that_cannot_count_is_refused(line, cure):
    start = equals_file("1", "number")
    text = start[: start.index("equals:")] + line + "}\n"
    with pytest.raises(YamlFileError, match=re.escape(cure)):
        ReadRubric.parsed(text.encode(), Path("lake.yaml"))


def _yes(question):
    return question.template(reasoning="yes", result=True)


@pytest.mark.parametrize(
    "text",
    [
        "a 'b' \"c\"",
        "back\\slash \\n \\",
        "{braces} of {{text}}",
        "two\nlines",
        "ümläut 🐟 §",
        '"""',
        "f'{x}'",
    ],
)
async def test_texts_reach_the_judge_as_they_are_written(tmp_path, text):
    """Quotes, braces, backslashes, line breaks and signs of any kind, in every text of the file."""
    braced = text.replace("{", "{{").replace("}", "}}")
    leaf = {
        "id": "deep",
        "desc": braced,
        "claim": f"{braced} {{depth}}",
        "sources": "answer",
        "instruction": braced,
    }
    plain = {
        "task": "lake",
        "question": text,
        "extract": {"depth": text},
        "root": {"children": [{**leaf, "sources": "answer", "tags": [text]}]},
    }
    path = tmp_path / "lake.yaml"
    path.write_text(json.dumps(plain, ensure_ascii=False), encoding="utf-8")

    def replies(question):
        if "reasoning" in question.template.model_fields:
            return _yes(question)
        return question.template(depth="80 m")

    judge = ScriptedJudge(replies)
    _, result = await tree_of(path, judge)
    tree = result["eval_breakdown"][0]["verification_tree"]
    [found] = tree["children"]
    assert (tree["desc"], found["desc"], found["tags"]) == (text.strip(), text, [text])
    assert found["evidence"]["claim"] == f"{text} 80 m"
    assert found["evidence"]["additional_instruction"] == text
    assert " ".join(text.split()) in " ".join(judge.questions[0].text.split())


BOUNDS = """\
task: lake
question: Which trip?
extract:
  day: the day
  end: the last day
  ferry: {ask: the price, type: number}
  tour: the price with its unit
  urls: its pages
  stops:
    ask: the stops
    list: 3
    fields: {name: its name}
root:
  children:
    - {id: cheap, desc: a, limit: {sum_of: [ferry, tour], at_most: 90}}
    - {id: fair, desc: b, limit: {field: ferry, at_least: 10, at_most: tour}}
    - {id: stops, desc: c, limit: {count_of: stops, at_least: 2}}
    - {id: late, desc: d, limit: {field: day, after: 2025-09-01, before: end}}
    - {id: official, desc: e, present: urls, domain: [lake.example]}
    - id: either
      desc: f
      any_of:
        - {present: end, limit: {field: ferry, at_most: 1}}
        - {claim: "It costs {ferry}.", sources: "https://fares.example/", instruction: "x"}
"""
TRIP = {"day": "12 October 2025", "end": "2025-10-13", "ferry": 20, "tour": "70 crowns"}
TRIP |= {"urls": ["https://www.lake.example/a"], "stops": [{"name": "a"}, {"name": "b"}]}


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        ({}, {"either"}),
        ({"ferry": 1}, {"fair"}),
        ({"ferry": 21}, {"cheap", "either"}),
        ({"tour": None}, {"cheap", "fair", "either"}),
        ({"stops": [{"name": "a"}, {"name": None}]}, {"stops", "either"}),
        ({"day": "2025-09-01"}, {"late", "either"}),
        ({"end": "2025-10-12"}, {"late", "either"}),
        (
            {"urls": ["https://lake.example.org/", "https://notlake.example/"]},
            {"official", "either"},
        ),
    ],
)
async def test_bounds_domains_and_alternatives(tmp_path, change, failed):
    """The fixed address is unavailable here, so that its claim fails."""
    judge = ScriptedJudge(lambda question: question.template(**(TRIP | change)))
    statuses, _ = await tree_of(written(tmp_path, BOUNDS), judge)
    assert {name for name, status in statuses.items() if status == "failed"} - {"root"} == failed


@pytest.mark.parametrize(
    ("old", "new", "cure"),
    [
        ("at_most: 90", "at_most: much", "'much' is neither a number nor a field"),
        ("after: 2025-09-01", "after: soon", "'soon' is neither a day, such as"),
        ("count_of: stops", "count_of: ferry", "'ferry' is not a list of the extraction"),
        ("count_of: stops, at_least: 2", "count_of: stops", "needs a bound"),
        ("limit: {field: day", "limit: {count_of: stops, field: day", "exactly one of field"),
        ("field: day, after", "sum_of: [day], after", "for the day of one field"),
        ("present: urls, domain", "limit: {field: ferry, at_most: 1}, domain", "goes with sources"),
        ("present: end", "present: ends", "no field 'ends'"),
        ('sources: "https://fares.example/", ', "", "the claim has no sources"),
        ("      any_of:", "      present: end\n      any_of:", "does not go with any_of"),
    ],
)
def test_bounds_and_alternatives_that_make_no_sense_are_refused(old, new, cure):
    assert old in BOUNDS
    with pytest.raises(YamlFileError, match=re.escape(cure)):
        ReadRubric.parsed(BOUNDS.replace(old, new, 1).encode(), Path("lake.yaml"))


def test_the_published_schema_is_the_models():
    """Editors check rubric files by it."""
    published = json.loads(
        (REPOSITORY / "docs" / "rubric-file.schema.json").read_text(encoding="utf-8")
    )
    assert published == rubric_schema()


def test_placeholders_are_names_in_braces():
    """Doubled braces are text."""
    assert placeholders("{a.b} of {number} and {{c}}") == ["a.b", "number"]


def test_a_misspelled_field_is_suggested_as_it_is_written(tmp_path):
    walks = (EXAMPLES / "step_free_walks.yaml").read_text(encoding="utf-8")
    text = walks.replace("sources: item.urls", "sources: item.url", 1)
    with pytest.raises(YamlFileError, match=r"'item.url': did you mean 'item.urls'"):
        ReadRubric.parsed(text.encode(), tmp_path / "walks.yaml")


WRONG_FILES = {
    "": "line 1: the file is empty: mind2web2 new TASK writes one to begin with",
    "hello": 'line 1: should be keys with values, not "hello"',
    "task: x\nroot:\n\tchildren: 3": "line 3: no proper YAML (while scanning for the next token "
    "found "
    "character that cannot start any token): indent with spaces, not tabs",
    "task: x\nquestion\nroot: 1": "line 2: no proper YAML (while scanning a simple key could not "
    "find "
    "expected ':', noticed in line 3): write a colon and a space after the key",
    "task: x\nquestion:Who?\nroot: 1": "line 2: no proper YAML",
    "task: x\nquestion: 'Who?\nroot: 1\n": "line 2: no proper YAML (while scanning a quoted "
    "scalar found "
    "unexpected end of stream, noticed in line 4): end the text with the quote",
    "task: x\nroot: [a, b\nquestion: c": "line 2: no proper YAML (while parsing a flow sequence "
    "did not find "
    "expected ',' or ']', noticed in line 3): close the bracket",
    "task: x\nroot: {a: b\nquestion: c": "line 2: no proper YAML",
    'task: x\nquestion: "a \\q b"': "line 2: no proper YAML (while parsing a quoted scalar found "
    "unknown "
    "escape character): write \\\\ for a backslash",
    "task: x\nquestion: é\x01": "line 2: no proper YAML (character #x0001: control characters",
    "task: [x]\n": "line 1, task: should be a valid string",
    "root: 3": "line 1, root: should be keys with values, not 3",
    "root:\n  children: []": "line 2, root.children: Tuple should have at least 1 item",
    "root:\n  children:\n    - x": 'line 3, root.children[0]: should be keys with values, not "x"',
    "root:\n  children:\n    - {id: }": "line 3, root.children[0].id: should be a valid string, not null",
}


@pytest.mark.parametrize("text", WRONG_FILES)
def test_a_file_that_is_no_rubric_is_refused_with_the_line(text):
    with pytest.raises(YamlFileError) as raised:
        ReadRubric.parsed(text.encode(), Path("lake.yaml"))
    assert WRONG_FILES[text] in str(raised.value)
