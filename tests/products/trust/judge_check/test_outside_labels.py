"""``check-judge --labels``: claims that others labelled, with a judge on loopback."""

import json

import pytest
from PIL import Image
from projects import block_in, call
from servers.judge_server import JudgeServer, image_urls, prompt_text

from mind2web2.cli import main
from mind2web2.errors import UsageError
from mind2web2_trust.judge_check.outside_labels import read_labels

TEXT = "The bridge is 310 m long. It opened in 1911."


def literal(body):
    """Support what stands in the page word for word."""
    prompt = prompt_text(body)
    claim = block_in(prompt, "claim")
    return {
        "reasoning": "r",
        "result": claim in (block_in(prompt, "page") or ""),
        "quote": "",
    }


@pytest.fixture
def judge(tmp_path, monkeypatch):
    """Stand in a folder beside that judge."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    monkeypatch.setenv("COLUMNS", "160")
    with JudgeServer(literal) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        yield server


def write(path, rows):
    """Write rows as JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_a_judge_is_measured_on_given_labels(tmp_path, judge):
    rows = [
        {
            "claim": "The bridge is 310 m long.",
            "label": True,
            "text": TEXT,
        },
        {
            "claim": "The bridge is 310 km long.",
            "label": False,
            "text": TEXT,
        },
        {
            "claim": "It has been open since 1911.",
            "label": True,
            "text": TEXT,
            "category": "words",
        },
        {
            "claim": "It opened in 1911.",
            "label": True,
            "text": TEXT * 100,
        },
    ]
    write(tmp_path / "labels.jsonl", rows)
    outcome = call(main, "check-judge", "--labels", "labels.jsonl")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert "Balanced accuracy: 83%." in outcome.stdout, outcome.stdout
    assert (
        "Wrong: 3: It has been open since 1911. Expected: true. Judge said: false."
        in outcome.stdout
    )
    assert not list(tmp_path.rglob("*check*.json"))
    assert all("image_url" not in json.dumps(body) for body in judge.requests)
    found = json.loads(call(main, "check-judge", "--labels", "labels.jsonl", "--json").stdout)
    [measured] = found["judges"]
    assert (measured["overall"]["right"], measured["balanced_accuracy"]) == (
        3,
        pytest.approx(5 / 6),
    )


def test_a_page_may_be_an_image_or_the_answer(tmp_path, judge):
    Image.new("L", (300, 200), 255).save(tmp_path / "poster.png")
    claim = {"claim": "The bridge is 310 m long.", "label": True}
    rows = [
        claim | {"image": "poster.png", "label": False},
        claim | {"response": "The bridge is 310 m long.", "label": False},
        claim | {"text": TEXT},
    ]
    write(tmp_path / "labels.jsonl", rows)
    words = ("check-judge", "--labels", "labels.jsonl", "--json")
    found = json.loads(call(main, *words).stdout)["judges"][0]
    assert (found["overall"]["cases"], found["overall"]["right"]) == (3, 3)
    images = [body for body in judge.requests if image_urls(body)]
    assert len({block_in(prompt_text(body), "page address") for body in images}) == 1


def test_claims_on_one_text_share_a_page(tmp_path):
    rows = [
        {"claim": f"Claim {n}.", "label": n % 2 == 0, "text": f"Text {n % 10}."}
        for n in range(1000)
    ]
    write(tmp_path / "rows.jsonl", rows)
    labelled = read_labels(tmp_path / "rows.jsonl")
    assert (len(labelled.claims), len(labelled.pages)) == (1000, 10)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "has no labels"),
        ('{"claim": "c", "label": true, "text": "t"}\nx', "line 2: Invalid JSON"),
        ("[1]", "line 1: Input should be an object"),
        ("[" * 100_000 + "]" * 100_000, "line 1: Invalid JSON: recursion limit"),
        ('{"claim": "c", "text": "t"}', "line 1: label: Field required"),
        ('{"claim": "c", "label": "perhaps", "text": "t"}', "line 1: label: "),
        ('{"claim": "c", "label": true}', "line 1: text, image or response missing"),
        ('{"claim": "c", "label": true, "text": "t", "instrution": "i"}', "line 1: instrution: "),
        ('{"claim": "c", "label": true, "image": "gone.png"}', "no image .*gone.png"),
    ],
)
def test_a_wrong_row_is_named(tmp_path, content, message):
    (tmp_path / "rows.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        read_labels(tmp_path / "rows.jsonl")
