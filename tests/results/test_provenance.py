"""The provenance of a result."""

import hashlib
import platform
from importlib.metadata import version

from mind2web2 import __version__
from mind2web2.judge.spec import JudgeSpec
from mind2web2.results.provenance import Provenance, library_versions, served_by
from mind2web2.utils.files import file_sha256, text_sha256

JUDGE = JudgeSpec("judge-1").record("openai http://localhost/v1")
MADE_FROM = Provenance(
    answer_sha256="a",
    script="example/t.py",
    script_sha256="b",
    settings_sha256="c",
    judge=JUDGE,
    pages={"https://a.example": None},
)


def test_digests_are_over_the_very_bytes(tmp_path):
    (tmp_path / "t.py").write_bytes(b"\xff\r\n")
    assert file_sha256(tmp_path / "t.py") == hashlib.sha256(b"\xff\r\n").hexdigest()
    assert text_sha256("日本") == hashlib.sha256("日本".encode()).hexdigest()


def test_versions_cover_everything_that_shapes_a_question():
    versions = library_versions()
    assert versions["mind2web2"] == __version__
    assert versions["python"] == platform.python_version()
    assert versions["pillow"] == version("pillow")
    assert {
        "aiohttp",
        "pypdfium2",
        "patchright",
        "pydantic",
    } <= versions.keys()


def test_a_judges_record_says_all_that_determines_its_replies():
    """Parameters that change no reply are left out."""
    settings = JudgeSpec(
        "judge-1",
        temperature=0.5,
        reasoning_effort="low",
        max_images=3,
        extra_body='{"top_k": 1, "user": "x"}',
        votes="1",
    )
    record = settings.record("openai http://large/v1")
    assert record.model_dump() == {
        "provider": "openai",
        "endpoint": "openai http://large/v1",
        "model": "judge-1",
        "temperature": 0.5,
        "reasoning_effort": "low",
        "max_images": 3,
        "extra_body": '{"top_k":1}',
        "votes": 1,
    }


def test_served_models_are_counted():
    served = [("b", "fp"), (None, None), *[("a", None)] * 5]
    assert [
        (each.model, each.system_fingerprint, each.judgments) for each in served_by(served)
    ] == [
        ("a", None, 5),
        ("b", "fp", 1),
        (None, None, 1),
    ]


def test_records_of_earlier_versions_stay_readable():
    earlier = MADE_FROM.model_dump(
        exclude={"versions", "served", "with_captures", "listing_sha256"}
    )
    assert Provenance.model_validate(earlier) == MADE_FROM
    assert Provenance.model_validate_json(MADE_FROM.model_dump_json()) == MADE_FROM
