"""Spans and events of an evaluation, as a receiver of OpenTelemetry's protocol gets them."""

import subprocess
import sys

import pytest
from projects import AGENT, TASK, call, claim_in, entered
from servers.judge_server import JudgeServer, prompt_text, status
from servers.otlp_receiver import OtlpReceiver

from mind2web2.cli import evaluate_main
from mind2web2.errors import UsageError
from mind2web2.plugins.telemetry.telemetry import EVENT, signals_of

CLAIMS = {"deep": ("The lake is deep.", None), "wide": ("The lake is wide.", None)}
ADDRESS = "OTEL_EXPORTER_OTLP_ENDPOINT"
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


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
    """With the attributes of the GenAI conventions, and the score."""
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
@pytest.mark.parametrize("has_texts", [False, True])
def test_each_leaf_and_answer_is_an_event(judge, receiver, monkeypatch, has_texts):
    """Within its answer's span; claims are in it only where texts are asked for."""
    monkeypatch.setenv(CONTENT, str(has_texts).lower())
    assert evaluate(judge).returncode == 0
    assert {event.name for event in receiver.events} == {EVENT}
    spans = {span.span for span in spans_of(receiver, "evaluate_answer")}
    assert {event.parent for event in receiver.events} == spans
    found = {
        (
            event.attributes["gen_ai.evaluation.name"],
            event.attributes["gen_ai.evaluation.score.value"],
            event.attributes.get("gen_ai.evaluation.score.label"),
            event.attributes.get("mind2web2.claim"),
        )
        for event in receiver.events
    }
    claims = {name: claim if has_texts else None for name, (claim, _) in CLAIMS.items()}
    assert found == {
        ("rubric_tree", 0.5, None, None),
        ("deep", 1.0, "passed", claims["deep"]),
        ("wide", 0.0, "failed", claims["wide"]),
    }
    assert {
        (one.attributes["gen_ai.agent.name"], one.attributes["mind2web2.task"])
        for one in receiver.events
    } == {(AGENT, TASK)}
    leaf = next(one for one in receiver.events if "mind2web2.leaf" in one.attributes)
    explanation = leaf.attributes["gen_ai.evaluation.explanation"]
    assert explanation.startswith("decided by judge; votes: ")


@pytest.mark.usefixtures("project")
def test_results_that_are_taken_again_add_nothing(judge, receiver):
    """Nothing was judged."""
    assert evaluate(judge).returncode == 0
    before = len(receiver.spans), len(receiver.events)
    assert evaluate(judge).returncode == 0
    assert (len(receiver.spans), len(receiver.events)) == before


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("has_texts", [False, True])
def test_a_failure_is_sent_without_texts_unless_asked(receiver, monkeypatch, has_texts):
    monkeypatch.setenv(CONTENT, str(has_texts).lower())
    with JudgeServer(faults=lambda _: status(400, "the model is asleep")) as judge:
        assert evaluate(judge).returncode in (1, 2)
    requests = [span for span in receiver.spans if span.name.startswith("chat ")]
    errors = {span.attributes["error.type"]: span.error for span in requests}
    assert "JudgeRequestError" in errors
    assert set(errors) <= {"JudgeRequestError", "CancelledError"}
    answers = spans_of(receiver, "evaluate_answer")
    explanations = [event.attributes["gen_ai.evaluation.explanation"] for event in receiver.events]
    assert {event.attributes["error.type"] for event in receiver.events} == {"no_score"}
    texts = [errors["JudgeRequestError"], *explanations]
    texts += [span.error for span in answers]
    assert answers
    assert explanations
    assert {"asleep" in text for text in texts} == {has_texts}


@pytest.mark.usefixtures("project")
def test_a_receiver_that_is_away_costs_no_result(judge, monkeypatch, caplog):
    """The run has the same results, and says once what was not sent and why."""
    with OtlpReceiver() as gone:
        address = gone.url
    monkeypatch.setenv(ADDRESS, address)
    # The exporter says why only before a second try, which follows about a second later.
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "4")
    outcome = evaluate(judge)
    assert outcome.returncode == 0
    assert "0.5" in outcome.stdout
    printed = " ".join(outcome.stdout.split())
    assert printed.count("Warning: not all telemetry was sent: ") == 1
    assert printed.count("Connection refused") == 1
    assert "check the receiver that OTEL_EXPORTER_OTLP_ENDPOINT names" in printed
    assert outcome.stderr == ""
    assert [one.name for one in caplog.records if "opentelemetry" in one.name] == []


@pytest.mark.usefixtures("project")
def test_an_exporter_that_is_not_supported_is_named(judge, monkeypatch):
    """The run goes on without it."""
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
    outcome = evaluate(judge)
    assert outcome.returncode == 0
    warning = "Warning: no telemetry: OTEL_TRACES_EXPORTER=zipkin is not supported"
    assert warning in outcome.stdout


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, ()),
        ({ADDRESS: "http://x"}, ("TRACES", "LOGS")),
        ({ADDRESS: "http://x", "OTEL_SDK_DISABLED": "True"}, ()),
        ({ADDRESS: "http://x", "OTEL_LOGS_EXPORTER": "none"}, ("TRACES",)),
        ({"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://x"}, ("LOGS",)),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, ("TRACES",)),
    ],
)
def test_the_environment_says_what_is_exported(environment, expected):
    """By the names that OpenTelemetry has."""
    assert signals_of(environment) == expected


def test_another_exporter_is_refused():
    """Rather than taken for another."""
    with pytest.raises(UsageError, match="set otlp or none"):
        signals_of({"OTEL_LOGS_EXPORTER": "console"})


def test_nothing_of_it_is_imported_while_it_is_off():
    """Not even by the command that would export."""
    code = (
        "import sys, mind2web2.cli.evaluate_run;"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    command = [sys.executable, "-c", code]
    outcome = subprocess.run(command, capture_output=True, text=True, check=True)
    assert outcome.stdout == "[]\n"
