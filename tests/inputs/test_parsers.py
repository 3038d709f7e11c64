"""Whatever a parser is given, it reads it or says in one line what is wrong."""

import json
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inputs.mutations import mutated
from inputs.parsers import PARSERS

QUICK = [name for name, parser in PARSERS.items() if not parser.is_slow]
SLOW = [name for name, parser in PARSERS.items() if parser.is_slow]
JSON_READERS = [name for name, parser in PARSERS.items() if parser.is_json]


def fixed(examples):
    """Return settings under which every run tries the same inputs."""
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.just("http://a.example/x")
)
# Names that the files have.
KNOWN_NAMES = [
    "answer_name",
    "score",
    "status",
    "final_score",
    "provenance",
    "judge_usage",
    "time_seconds",
    "urls",
    "all_unique_urls",
    "url_types",
    "kind",
    "troubles",
    "response",
    "questions",
    "custom_id",
    "choices",
    "message",
    "content",
    "usage",
    "error",
    "reasoning",
    "result",
]
NAMES = st.text(st.characters(), max_size=8) | st.sampled_from(KNOWN_NAMES)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
)


def check(name, content):
    """Read an input in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        assert PARSERS[name].fault(content, Path(folder)) is None


@pytest.mark.parametrize("name", PARSERS)
def test_sound_inputs_are_read(name, tmp_path):
    for number, seed in enumerate(PARSERS[name].seeds):
        folder = tmp_path / str(number)
        folder.mkdir()
        fault = PARSERS[name].fault(seed, folder)
        assert fault is None


@pytest.mark.parametrize("name", QUICK)
@given(seed=st.integers(0, 10**9))
@fixed(40)
def test_nearly_sound_inputs_do_no_harm(name, seed):
    check(name, mutated(PARSERS[name].seeds, random.Random(seed)))


@pytest.mark.parametrize("name", SLOW)
@given(seed=st.integers(0, 10**9))
@fixed(15)
def test_nearly_sound_documents_do_no_harm(name, seed):
    check(name, mutated(PARSERS[name].seeds, random.Random(seed)))


@pytest.mark.parametrize("name", JSON_READERS)
@given(value=VALUES)
@fixed(40)
def test_any_value_of_json_does_no_harm(name, value):
    check(name, json.dumps(value).encode())


@pytest.mark.parametrize("name", ["url", "answer", "document", "title"])
@given(text=st.text(st.characters(), max_size=300))
@fixed(100)
def test_any_text_does_no_harm(name, text):
    check(name, text.encode("utf-8", "surrogatepass"))
