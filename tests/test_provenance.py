"""What a result was made from."""

import hashlib
import subprocess
import sys

import pytest
from projects import clean_environment

from mind2web2.provenance import JudgeRecord, Provenance, file_sha256, settings_sha256, text_sha256
from mind2web2.recorded_judge import JudgeSettings

JUDGE = JudgeRecord.of(JudgeSettings("openai", "judge-1"), "openai http://localhost/v1")
MADE_FROM = Provenance(
    answer_sha256="a",
    script="example/t.py",
    script_sha256="b",
    settings_sha256="c",
    judge=JUDGE,
    pages={"https://a.example": None},
)


def test_the_same_is_no_difference():
    """Also after a way through a file; pages are compared apart, and a script's bytes are what it is."""
    read = Provenance.model_validate_json(MADE_FROM.model_dump_json())
    assert read == MADE_FROM
    for changes in ({"pages": {}}, {"script": "2025_07_14/t.py"}):
        assert MADE_FROM.differs_from(read.model_copy(update=changes)) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"answer_sha256": "x"}, "answer"),
        ({"script_sha256": "x"}, "script"),
        ({"settings_sha256": "x"}, "settings"),
        ({"judge": JUDGE.model_copy(update={"provider": "azure_openai"})}, "judge"),
        ({"judge": JUDGE.model_copy(update={"endpoint": "elsewhere"})}, "judge"),
        ({"judge": JUDGE.model_copy(update={"model": "judge-2"})}, "judge"),
        ({"judge": JUDGE.model_copy(update={"temperature": 0.0})}, "judge"),
        ({"judge": JUDGE.model_copy(update={"reasoning_effort": "low"})}, "judge"),
        ({"answer_sha256": "x", "settings_sha256": "x"}, "answer, settings"),
    ],
)
def test_each_change_is_named(changes, words):
    """The log says why a result no longer holds."""
    assert MADE_FROM.differs_from(MADE_FROM.model_copy(update=changes)) == words


def test_digests_are_over_the_very_bytes(tmp_path):
    """Text over its UTF-8."""
    (tmp_path / "t.py").write_bytes(b"\xff\r\n")
    assert file_sha256(tmp_path / "t.py") == hashlib.sha256(b"\xff\r\n").hexdigest()
    assert text_sha256("日本") == hashlib.sha256("日本".encode()).hexdigest()


def test_settings_are_the_same_in_another_process():
    """Otherwise nothing would ever be reused."""
    code = "from mind2web2.provenance import settings_sha256; print(settings_sha256())"
    other = subprocess.run(
        [sys.executable, "-c", code],
        env=clean_environment(PYTHONHASHSEED="7"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout.strip() == settings_sha256()
