"""Spans of an evaluation, as a receiver of OpenTelemetry's protocol gets them."""

import subprocess
import sys

import pytest
from projects import AGENT, call, claim_in, entered
from servers.judge_server import JudgeServer, prompt_text, status
from servers.otlp_receiver import OtlpReceiver

from mind2web2.cli import evaluate_main
from mind2web2_telemetry.telemetry import EVENT

CLAIMS = {"deep": ("The lake is deep.", None), "wide": ("The lake is wide.", None)}
ADDRESS = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project with two answers to a task of two claims."""
    project = entered(tmp_path, monkeypatch)
    project.add_answer("answer_1")
    project.add_answer("answer_2", "The lake is shallow.")
    project.add_script(CLAIMS)
    return project


@pytest.fixture
def judge():
    """Serve a judge that supports the first claim."""

    def reply(body):
        is_deep = claim_in(prompt_text(body)) == "The lake is deep."
        return {"reasoning": "read", "result": is_deep}

    with JudgeServer(reply) as server:
        yield server


@pytest.fixture
def receiver(monkeypatch):
    """Receive what the environment has exported."""
    with OtlpReceiver() as server:
        monkeypatch.setenv(ADDRESS, server.url)
        yield server


def evaluate(judge, *more):
    """Evaluate the answers in this process."""
    words = ["--agent_name", AGENT, "--judge_base_url", judge.base_url]
    return call(evaluate_main, *words, *more)


def spans_of(receiver, name):
    """Return the spans of a name."""
    return [span for span in receiver.spans if span.name == name]


@pytest.mark.usefixtures("project")
def test_each_answer_is_a_span_and_each_request_its_child(judge, receiver):
    assert evaluate(judge).returncode == 0
    answers = {span.span: span for span in spans_of(receiver, "evaluate_answer")}
    assert sorted(span.attributes["mind2web2.answer"] for span in answers.values()) == [
        "answer_1.md",
        "answer_2.md",
    ]
    assert {span.attributes["mind2web2.score"] for span in answers.values()} == {0.5}
    assert {span.service for span in receiver.spans} == {"mind2web2"}
    asked = [span for span in receiver.spans if span.name.startswith("chat ")]
    assert len(asked) == len(judge.requests)
    for span in asked:
        answer = answers[span.parent]
        attributes = span.attributes
        assert span.trace == answer.trace
        assert attributes["mind2web2.answer"] == answer.attributes["mind2web2.answer"]
        assert span.name == f"chat {attributes['gen_ai.request.model']}"
        assert attributes["gen_ai.operation.name"] == "chat"
        assert attributes["gen_ai.provider.name"] == "openai"
        assert attributes["gen_ai.usage.input_tokens"] > 0
        assert attributes["server.address"] == "127.0.0.1"
        assert attributes["mind2web2.node"] in CLAIMS


@pytest.mark.usefixtures("project")
def test_each_leaf_is_an_event_of_its_answers_span(judge, receiver):
    assert evaluate(judge).returncode == 0
    answers = spans_of(receiver, "evaluate_answer")
    assert len(answers) == 2
    for answer in answers:
        assert {
            (
                name,
                leaf["gen_ai.evaluation.name"],
                leaf["gen_ai.evaluation.score.value"],
                leaf["gen_ai.evaluation.score.label"],
            )
            for name, leaf in answer.events
        } == {(EVENT, "deep", 1.0, "passed"), (EVENT, "wide", 0.0, "failed")}


@pytest.mark.usefixtures("project")
def test_results_that_are_taken_again_add_nothing(judge, receiver):
    """Nothing was judged."""
    assert evaluate(judge).returncode == 0
    before = len(receiver.spans)
    assert evaluate(judge).returncode == 0
    assert len(receiver.spans) == before


@pytest.mark.usefixtures("project")
def test_a_failure_is_sent_without_texts(receiver):
    with JudgeServer(faults=lambda _: status(400, "the model is asleep")) as judge:
        assert evaluate(judge).returncode in (1, 2)
    requests = [span for span in receiver.spans if span.name.startswith("chat ")]
    assert "JudgeRequestError" in {span.attributes["error.type"] for span in requests}
    answers = spans_of(receiver, "evaluate_answer")
    assert {span.attributes["error.type"] for span in answers} == {"no_score"}
    assert all(span.is_error for span in [*requests, *answers])
    assert "asleep" not in str(receiver.spans)


@pytest.mark.usefixtures("project")
def test_a_receiver_that_is_away_costs_no_result(judge, monkeypatch):
    with OtlpReceiver() as gone:
        monkeypatch.setenv(ADDRESS, gone.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    outcome = evaluate(judge)
    assert outcome.returncode == 0
    assert "0.5" in outcome.stdout


@pytest.mark.usefixtures("project")
def test_the_environment_can_switch_it_off(judge, receiver, monkeypatch):
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert evaluate(judge).returncode == 0
    assert receiver.spans == []


def test_nothing_of_it_is_imported_while_it_is_off():
    code = (
        "import sys, mind2web2.cli.evaluate_run;"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    command = [sys.executable, "-c", code]
    outcome = subprocess.run(command, capture_output=True, text=True, check=True)
    assert outcome.stdout == "[]\n"
