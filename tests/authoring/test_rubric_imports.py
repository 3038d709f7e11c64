"""Rubrics of other tools as rubric files, and rubric files as QUEST's tree and as YAML."""

import json

import pytest
from projects import REPOSITORY

from mind2web2.authoring.rubric_imports import import_rubrics, quest_tree
from mind2web2.authoring.rubric_text import expanded, rubric_yaml
from mind2web2.cli import main
from mind2web2.rubric.verdicts import weighted_share
from mind2web2.scripts.load import load_eval_script
from mind2web2.scripts.rubric_reading import parsed_rubric, read_rubric

EXAMPLES = sorted((REPOSITORY / "examples" / "rubrics" / "example").glob("*.yaml"))
HEALTH = {
    "prompt": [{"role": "user", "content": "Is {it} safe?"}],
    "prompt_id": "p-1",
    "rubrics": [
        {"criterion": "Names the dose {5 mg}", "points": 5, "tags": ["axis:accuracy"]},
        {"criterion": "Recommends twice the dose", "points": -4, "tags": []},
    ],
}
RESEARCH = {
    "prompt": "Q",
    "sample_id": "s 1",
    "rubrics": [{"criterion": "Cites", "weight": 2, "axis": "Sources"}],
}
DRACO = {
    "id": "d",
    "problem": "Q",
    "answer": json.dumps(
        {"sections": [{"criteria": [{"requirement": "States x", "weight": 1.5}]}]}
    ),
}
PAPER = {
    "id": "r",
    "requirements": "Reproduced",
    "weight": 1,
    "sub_tasks": [
        {
            "id": "a",
            "requirements": "Code",
            "weight": 3,
            "sub_tasks": [],
            "task_category": "Code Development",
        },
        {
            "id": "b",
            "requirements": "Results",
            "weight": 1,
            "sub_tasks": [
                {"id": "c", "requirements": "First", "weight": 1, "sub_tasks": []},
                {"id": "d", "requirements": "Second", "weight": 1, "sub_tasks": []},
            ],
        },
    ],
}


def imported(folder, record, **options):
    """Return the only rubric of a file with a record."""
    path = folder / "theirs.json"
    path.write_text(json.dumps(record), encoding="utf-8")
    [found] = import_rubrics(path, **options)
    return found


def leaves(found):
    """Return weight, claim and tags of all leaves."""
    return [
        (node.weight, node.claim, node.tags)
        for node in found.rubric.root.walk()
        if node.is_leaf
    ]


@pytest.mark.parametrize(
    ("record", "kind", "task", "first"),
    [
        (
            HEALTH,
            "HealthBench",
            "p-1",
            (
                5,
                "The answer meets this criterion: Names the dose {{5 mg}}",
                ("axis:accuracy",),
            ),
        ),
        (
            RESEARCH,
            "ResearchRubrics",
            "s_1",
            (2, "The answer meets this criterion: Cites", ("Sources",)),
        ),
        (DRACO, "DRACO", "d", (1.5, "The answer meets this criterion: States x", ())),
        (
            PAPER,
            "PaperBench",
            "theirs",
            (0.75, "The answer meets this criterion: Code", ("Code Development",)),
        ),
    ],
)
def test_rubrics_of_other_tools(tmp_path, record, kind, task, first):
    """Each becomes a file that is read and run like any other."""
    found = imported(tmp_path, record)
    assert (found.kind, found.rubric.task, leaves(found)[0]) == (kind, task, first)
    written = tmp_path / f"{task}.yaml"
    written.write_text(found.text(), encoding="utf-8")
    assert read_rubric(written).rubric == found.rubric
    assert load_eval_script(written)


def test_negative_criteria_are_denied_only_where_that_is_wanted(tmp_path):
    """Their weight counts against the weighted figure where the denial fails."""
    assert imported(tmp_path, HEALTH).left_out == 1
    both = imported(tmp_path, HEALTH, negate=True)
    assert leaves(both)[1][:2] == (
        -4,
        "The answer does not meet this criterion: Recommends twice the dose",
    )
    weights = [weight for weight, _, _ in leaves(both)]
    assert weighted_share(zip(weights, [True, False], strict=True)) == 0.2


def test_weights_of_a_tree_are_shares_of_its_mean(tmp_path):
    """PaperBench's mean is the weighted figure."""
    shares = [weight for weight, _, _ in leaves(imported(tmp_path, PAPER))]
    assert shares == [0.75, 0.125, 0.125]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_tree_goes_to_quest_and_back(tmp_path, path):
    """Ids, descriptions, gates and strategies stay; a loop is written out."""
    rubric = read_rubric(path).rubric
    back = imported(tmp_path, quest_tree(rubric), task_id=rubric.task).rubric

    def shape(nodes):
        return [
            (n.id, n.desc, n.critical, n.strategy or "parallel", shape(n.children))
            for n in nodes
        ]

    assert back.question.strip() == rubric.question.strip()
    assert back.root.strategy == rubric.root.strategy
    assert shape(back.root.children) == shape(expanded(rubric))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_rubric_is_written_as_it_was_read(path):
    """Nothing but comments is lost."""
    rubric = read_rubric(path).rubric
    assert parsed_rubric(rubric_yaml(rubric).encode(), path).rubric == rubric


@pytest.mark.parametrize(
    "record",
    [
        {"x": 1},
        {"rubrics": []},
        {"rubrics": [{"criterion": "a"}], "prompt": "q", "answer": 1, "problem": 2},
        {
            "rubric_tree": {
                "node_name": "a",
                "critical": True,
                "children": [{"node_name": "b"}],
            },
            "task_description": "q",
        },
    ],
)
def test_what_is_no_rubric_is_refused(tmp_path, record):
    """With the file and the number of the record."""
    if "rubric_tree" in record:
        record["rubric_tree"] = {"node_name": "r", "children": [record["rubric_tree"]]}
    path = tmp_path / "theirs.json"
    path.write_text(json.dumps(record), encoding="utf-8")
    assert main(["rubric", "import", str(path), "-o", str(tmp_path / "out")]) == 2


def test_the_commands(tmp_path, capsys):
    """Show, script and export write what they say; import writes a file for each line."""
    [museum] = [path for path in EXAMPLES if path.stem == "museum_saturday"]
    assert main(["rubric", "show", str(museum)]) == 0
    assert "ferry_in_time" in capsys.readouterr().out
    script = tmp_path / "museum.py"
    assert main(["rubric", "script", str(museum), "-o", str(script)]) == 0
    assert load_eval_script(script)
    assert main(["rubric", "script", str(museum), "-o", str(script)]) == 2
    assert main(["rubric", "export", str(museum)]) == 0
    lines = tmp_path / "theirs.jsonl"
    lines.write_text("\n".join(map(json.dumps, [HEALTH, RESEARCH])), encoding="utf-8")
    capsys.readouterr()
    assert main(["rubric", "import", str(lines), "-o", str(tmp_path / "out")]) == 0
    assert "2 rubric files" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "p-1.yaml",
        "s_1.yaml",
    }
