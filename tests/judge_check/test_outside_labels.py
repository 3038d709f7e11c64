"""``check-judge --labels``: claims that others labelled, with a judge on loopback."""

import json
import re

import pytest
from PIL import Image
from projects import block_in, call
from servers.judge_server import JudgeServer, image_urls, prompt_text
from servers.local_http import Answer, LocalHttp

from mind2web2.cli import main
from mind2web2.errors import UsageError
from mind2web2.judge_check.outside_labels import read_labels

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
    """Right on two claims, wrong on a true one in other words; without screenshots and record."""
    rows = [
        {
            "claim": "The bridge is 310 m long.",
            "label": True,
            "text": TEXT,
            "labels": [True, True, True],
        },
        {
            "claim": "The bridge is 310 km long.",
            "label": False,
            "text": TEXT,
            "labels": [False, False, True],
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
            "labels": [True, True, False],
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


def test_pages_may_be_addresses_and_images(tmp_path, judge):
    """An address is captured once; an image is shown; a page that is gone counts neither way."""

    def site(request):
        if "gone" in request.path:
            return Answer(drops=True)
        body = f"<title>Bridge</title><p>{TEXT}</p>".encode()
        return Answer(body, headers={"Content-Type": "text/html"})

    Image.new("L", (300, 200), 255).save(tmp_path / "poster.png")
    with LocalHttp(site) as served:
        claim = {"claim": "The bridge is 310 m long.", "label": True}
        rows = [
            claim | {"url": f"{served.url}/bridge"},
            claim | {"url": f"{served.url}/gone"},
            claim | {"image": "poster.png", "label": False},
            claim | {"response": "The bridge is 310 m long.", "label": False},
            claim
            | {
                "pages": [
                    {"text": "Nothing."},
                    {"text": TEXT, "url": "https://b.example/"},
                ]
            },
        ]
        write(tmp_path / "labels.jsonl", rows)
        words = ("check-judge", "--labels", "labels.jsonl", "--allow_private_network")
        found = json.loads(call(main, *words, "--json").stdout)["judges"][0]
        asked = len([one for one in served.requests if "bridge" in one.path])
        assert (found["overall"]["cases"], found["overall"]["right"]) == (4, 4)
        assert sum(found["failures"].values()) == 1
        call(main, *words)
        again = len([one for one in served.requests if "bridge" in one.path])
        assert again == asked, "the page is kept"
    images = [body for body in judge.requests if image_urls(body)]
    assert len({block_in(prompt_text(body), "page address") for body in images}) == 2
    assert any(
        block_in(prompt_text(body), "page address") == "https://b.example/"
        for body in judge.requests
    )


def test_claims_on_one_text_share_a_page(tmp_path):
    """So that the judge's provider bills the page once."""
    rows = [
        {"claim": f"Claim {n}.", "label": n % 2 == 0, "text": f"Text {n % 10}."}
        for n in range(1000)
    ]
    write(tmp_path / "rows.jsonl", rows)
    labelled = read_labels(tmp_path / "rows.jsonl")
    assert (len(labelled.claims), len(labelled.pages)) == (1000, 10)


def test_a_text_is_shown_for_its_own_rows_alone(tmp_path):
    """Rows that give the address alone have it captured, whichever rows come first."""
    row = {"label": True, "url": "https://x.example/p"}
    rows = [
        row | {"claim": "Is captured."},
        row | {"claim": "Is in a text.", "text": "One."},
        row | {"claim": "Is in another text.", "text": "Two."},
        row | {"claim": "Is captured, too."},
    ]
    for ordered in (rows, rows[::-1]):
        write(tmp_path / "rows.jsonl", ordered)
        labelled = read_labels(tmp_path / "rows.jsonl")
        shown = {
            claim.question: labelled.pages[claim.urls[0]].text
            for claim in labelled.claims
            if claim.urls[0] in labelled.pages
        }
        assert shown == {"Is in a text.": "One.", "Is in another text.": "Two."}
        assert labelled.to_capture == {"https://x.example/p"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "has no labels"),
        ('{"claim": "c", "label": true, "text": "t"}\nx', "line 2: no JSON"),
        ("[1]", "line 1: no JSON object"),
        ("[" * 100_000 + "]" * 100_000, r"line 1: no JSON \(maximum recursion"),
        ('{"claim": "c", "text": "t"}', "line 1: label: field required"),
        ('{"claim": "c", "label": "perhaps", "text": "t"}', "line 1: label: "),
        ('{"claim": "c", "label": true}', "line 1: text, url, image or pages missing"),
        (
            '{"claim": "c", "label": true, "text": "t", "pages": [{"text": "t"}]}',
            "line 1: write text, url and image in each of pages alone",
        ),
        (
            '{"claim": "c", "label": true, "pages": [{"text": "t"}, {"url": "u"}]}',
            "line 1: give text or image of all pages, or of none",
        ),
        ('{"claim": "c", "label": true, "image": "gone.png"}', "no image .*gone.png"),
    ],
)
def test_a_wrong_row_is_named(tmp_path, content, message):
    """With file, line and field."""
    (tmp_path / "rows.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        read_labels(tmp_path / "rows.jsonl")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"clam": "c"}, "line 1: unknown field 'clam': did you mean claim?"),
        ({"claim": "c", "instrution": "i"}, "did you mean instruction?"),
        (
            {"claim": "c", "pages": [{"imgae": "a.png"}]},
            "line 1: pages: unknown field 'imgae': did you mean image?",
        ),
        ({"claim": "c", "txt": "t", "source": "mine"}, "did you mean text?"),
    ],
)
def test_a_misspelled_field_is_named(tmp_path, row, message):
    """It would be ignored; fields of other names are anyone's own."""
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"label": True, **row}), encoding="utf-8")
    with pytest.raises(UsageError, match=re.escape(message)):
        read_labels(path)


def test_fields_of_other_names_are_ignored(tmp_path):
    row = {"claim": "c", "label": True, "text": "t", "notes": "n", "urls": ["u"]}
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")
    labelled = read_labels(path)
    assert len(labelled.claims) == 1
