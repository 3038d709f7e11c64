"""The OpenAI client against a judge on loopback.

The tests cover requests, replies, and the error for each fault.
"""

import asyncio
import logging
import re
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from pydantic import BaseModel, RootModel
from servers import judge_server as faults
from servers.judge_server import (
    VERDICT,
    JudgeServer,
    RateLimit,
    image_urls,
    prompt_text,
)

from mind2web2.errors import (
    JudgeOutputError,
    JudgeRequestError,
    JudgeUnavailableError,
    UsageError,
)
from mind2web2.llm_client import retries
from mind2web2.llm_client.base_client import AsyncOpenAIClient
from mind2web2.llm_client.chat import ChatRequest, Usage
from mind2web2.llm_client.retries import RetryPolicy

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
MESSAGES = [
    {"role": "system", "content": "You judge."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "the page"},
            IMAGE,
            {"type": "text", "text": "the claim"},
        ],
    },
]


TEXT = [{"role": "user", "content": "the claim"}]


class Verdict(BaseModel):
    """A verdict."""

    reasoning: str
    result: bool


class Facts(BaseModel):
    """Free-form, which no strict schema can say."""

    facts: dict[str, str]


class Names(RootModel[list[str]]):
    """A list at the root, which JSON mode cannot give."""


def question(**changes):
    """Return a request for a verdict, with these fields changed."""
    return ChatRequest(**{"model": "gpt-4o", "messages": MESSAGES, "template": Verdict, **changes})


async def ask(server, retry, request=None):
    """Ask the server once over a client of its own."""
    async with AsyncOpenAIClient(
        base_url=server.base_url, api_key="sk-test", retry=retry
    ) as client:
        return await client.chat(request or question())


async def failure(server, retry, error_class, request=None):
    """Ask the server once and return the text of the error that comes of it."""
    with pytest.raises(error_class) as caught:
        await ask(server, retry, request)
    return str(caught.value)


async def test_a_template_is_asked_for_in_strict_schema_mode(quick):
    """One request with the schema and temperature 0 brings the filled template and its usage."""
    with JudgeServer() as server:
        reply = await ask(server, quick)
    (body,) = server.requests
    assert reply.value == Verdict(**VERDICT)
    assert body["response_format"]["type"] == "json_schema"
    assert body["response_format"]["json_schema"]["strict"] is True
    assert body["temperature"] == 0
    assert body["messages"] == MESSAGES
    assert reply.usage == Usage(input_tokens=100, cached_tokens=60, output_tokens=10)
    assert (reply.served_model, reply.system_fingerprint) == (
        "gpt-4o-2025-01-01",
        "fp_1",
    )
    assert reply.attempts == 1


async def test_free_text_comes_as_it_is(quick):
    with JudgeServer("just text") as server:
        reply = await ask(server, quick, question(template=None))
    assert (reply.text, reply.value) == ("just text", None)
    assert "response_format" not in server.requests[0]


async def test_parameters_are_passed_on(quick):
    """Effort, temperature and parameters that the SDK does not know reach the server."""
    request = question(temperature=0.7, reasoning_effort="high", extra={"seed": 7, "top_k": 3})
    with JudgeServer() as server:
        await ask(server, quick, request)
    body = server.requests[0]
    assert (
        body["temperature"],
        body["reasoning_effort"],
        body["seed"],
        body["top_k"],
    ) == (0.7, "high", 7, 3)


@pytest.mark.parametrize("temperature", [None, 0.0, 0.5])
async def test_reasoning_models_get_no_temperature(quick, temperature):
    with JudgeServer() as server:
        await ask(
            server,
            quick,
            question(model="openai/o4-mini-2025-04-16", temperature=temperature),
        )
    assert "temperature" not in server.requests[0]


async def test_a_refused_temperature_is_left_out_and_remembered(quick):
    """The first request learns it, the second does not ask again."""
    with JudgeServer(takes_temperature=False) as server:
        async with AsyncOpenAIClient(base_url=server.base_url, retry=quick) as client:
            first = await client.chat(question(model="my-deployment"))
            second = await client.chat(question(model="my-deployment"))
    assert ["temperature" in body for body in server.requests] == [True, False, False]
    assert (first.attempts, second.attempts) == (2, 1)
    assert first.value == second.value == Verdict(**VERDICT)


async def test_an_impossible_temperature_is_the_users_to_correct(quick):
    """A value out of range is not silently dropped."""
    with JudgeServer(takes_temperature=False) as server:
        text = await failure(server, quick, JudgeRequestError, question(temperature=7))
    assert "temperature" in text
    assert len(server.requests) == 1


async def test_free_form_templates_are_filled_in_json_mode(quick):
    """The schema is shown in a final part, and the shared parts stay first."""
    with JudgeServer({"facts": {"mayor": "Ada"}}) as server:
        reply = await ask(server, quick, question(template=Facts))
    (body,) = server.requests
    assert reply.value == Facts(facts={"mayor": "Ada"})
    assert body["response_format"] == {"type": "json_object"}
    assert body["messages"][1]["content"][:3] == MESSAGES[1]["content"]
    assert "JSON schema" in body["messages"][1]["content"][3]["text"]


async def test_a_list_at_the_root_is_asked_for_in_plain_text(quick):
    """JSON modes give objects only."""
    with JudgeServer('["Ada", "Bob"]') as server:
        reply = await ask(server, quick, question(template=Names))
    assert reply.value == Names(["Ada", "Bob"])
    assert "response_format" not in server.requests[0]


@pytest.mark.parametrize(
    ("refused_modes", "expected_modes"),
    [
        (("json_schema",), ["json_schema", "json_object", "json_object"]),
        (("json_schema", "json_object"), ["json_schema", "json_object", None, None]),
    ],
)
async def test_servers_without_schema_mode_are_asked_once(quick, refused_modes, expected_modes):
    """A refused mode is not tried again, and the schema is shown instead."""
    with JudgeServer(
        f"```json\n{Verdict(**VERDICT).model_dump_json()}\n```",
        refused_modes=refused_modes,
    ) as server:
        async with AsyncOpenAIClient(base_url=server.base_url, retry=quick) as client:
            replies = [await client.chat(question()) for _ in range(2)]
    assert [
        body.get("response_format", {}).get("type") for body in server.requests
    ] == expected_modes
    assert [reply.value for reply in replies] == [Verdict(**VERDICT)] * 2
    assert "JSON schema" in prompt_text(server.requests[-1])
    assert image_urls(server.requests[-1]) == ["data:image/png;base64,aGk="]


async def test_a_schema_that_is_refused_does_not_end_schema_mode(quick):
    """Other templates keep the better mode."""

    class Other(Verdict):
        """Another template."""

    bad_schema = faults.status(
        400, "Invalid schema for response_format 'Verdict'", param="response_format"
    )
    with JudgeServer(faults=[bad_schema]) as server:
        async with AsyncOpenAIClient(base_url=server.base_url, retry=quick) as client:
            await client.chat(question())
            await client.chat(question(template=Other))
            await client.chat(question())
    modes = [body["response_format"]["type"] for body in server.requests]
    assert modes == ["json_schema", "json_object", "json_schema", "json_object"]


@pytest.mark.parametrize(
    "fault",
    [
        faults.rate_limited(),
        faults.rate_limited(retry_after="0"),
        faults.rate_limited(retry_after_ms="5"),
        faults.status(408),
        faults.status(409),
        faults.status(500),
        faults.status(503, headers={"Retry-After": "Wed, 01 Jan 2020 00:00:00 GMT"}),
        faults.status(529),
        faults.drop_before_reply(),
        faults.drop_mid_reply(),
        faults.broken_body(),
        faults.broken_body("<html>a proxy's page</html>"),
        faults.broken_body('{"choices": "none"}'),
        faults.broken_body('{"error": {"code": 503, "message": "upstream overloaded"}}'),
        faults.content("", finish_reason="error"),
    ],
)
async def test_temporary_failures_are_retried(quick, fault, caplog):
    """Two such faults and then a good reply make a good reply.

    The log has one line for each retry.
    """
    with JudgeServer(faults=[fault, fault]) as server:
        reply = await ask(server, quick)
    assert reply.value == Verdict(**VERDICT)
    assert reply.attempts == len(server.requests) == 3
    retries = [record for record in caplog.records if record.name.startswith("mind2web2")]
    assert [record.levelno for record in retries] == [logging.WARNING] * 2
    assert all("\n" not in record.getMessage() for record in retries)


@pytest.mark.parametrize("fault", [faults.status(500), faults.broken_body()])
async def test_a_lasting_failure_is_unavailable(quick, fault):
    with JudgeServer(faults=[fault] * 10) as server:
        text = await failure(server, quick, JudgeUnavailableError)
    assert " unavailable: " in text
    assert len(server.requests) == quick.tries


async def test_a_server_that_refuses_all_requests_is_unavailable():
    """Refusals for coming too fast end with the time for all tries, not with their number."""
    policy = RetryPolicy(
        tries=1, total_s=0.5, outage_wait_s=0.5, first_wait_s=0.1, longest_wait_s=0.2
    )
    with JudgeServer(faults=[faults.rate_limited()] * 50) as server:
        text = await failure(server, policy, JudgeUnavailableError)
    assert "429" in text
    assert policy.tries < len(server.requests) < 50


async def test_a_refused_connection_is_unavailable(quick):
    """The text names the reason."""
    with JudgeServer() as server:
        pass
    assert "connection error: Connect call failed" in await failure(
        server, quick, JudgeUnavailableError
    )


async def test_silence_is_a_timeout():
    """A server that never answers is given up, each try in its time."""
    release = threading.Event()

    def wait_for_release(_):
        release.wait(30)
        return VERDICT

    retry = RetryPolicy(tries=2, outage_wait_s=0.5, first_wait_s=0.001, request_timeout_s=0.2)
    with JudgeServer(wait_for_release) as server:
        text = await failure(server, retry, JudgeUnavailableError)
        release.set()
    assert "unavailable: no answer within 0.2 s" in text


@pytest.mark.parametrize("is_a_date", [False, True])
async def test_a_wish_beyond_the_bound_fails_at_once(quick, is_a_date, caplog):
    """No wait of an hour; the text names it."""
    in_an_hour = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    wish = in_an_hour if is_a_date else "3600"
    with JudgeServer(faults=[faults.rate_limited(retry_after=wish)]) as server:
        text = await failure(server, quick, JudgeUnavailableError)
    assert re.search(r"asks to wait 3[56]\d\d", text)
    assert len(server.requests) == 1
    assert not [record for record in caplog.records if record.name.startswith("mind2web2")]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (faults.status(401, "Incorrect API key: sk-test"), "check the key given"),
        (faults.status(403, "no access"), "gpt-4o"),
        (
            faults.status(404, "The model does not exist", code="model_not_found"),
            "--judge_base_url",
        ),
        (faults.status(400, "Unknown parameter: 'foo'"), "Unknown parameter"),
        (faults.status(422, "bad"), "parameters"),
        (faults.status(429, "quota", code="insufficient_quota"), "top up"),
    ],
)
async def test_permanent_failures_are_not_retried(quick, fault, words):
    """A wrong key, model or request or an empty account costs one request.

    The error names the cure.
    """
    with JudgeServer(faults=[fault]) as server:
        text = await failure(server, quick, JudgeRequestError)
    assert len(server.requests) == 1
    assert words in text
    assert "sk-test" not in text


BAD_OUTPUTS = [
    faults.content("not JSON"),
    faults.content('{"reasoning": "no result"}'),
    faults.content({"reasoning": "r", "result": "perhaps"}),
    faults.truncated(),
    faults.truncated('{"reasoning": "r", "result": true}'),
    replace(faults.truncated(VERDICT), finish_reason="model_context_window_exceeded"),
]


@pytest.mark.parametrize("fault", BAD_OUTPUTS)
async def test_invalid_output_is_repaired_and_then_requested_again(quick, fault):
    """The repair shows the problem and the schema.

    The third and last request is the question alone.
    """
    with JudgeServer(faults=[fault] * 5) as server:
        text = await failure(server, quick, JudgeOutputError)
    assert "was not the requested JSON (form 'Verdict'), 3 times: " in text
    first, repair, last = server.requests
    assert repair["messages"][: len(MESSAGES)] == first["messages"] == MESSAGES
    assert len(last["messages"]) == len(MESSAGES) and "cannot be used" not in prompt_text(last)
    assert "cannot be used" in prompt_text(repair) and "JSON schema" in prompt_text(repair)
    with JudgeServer(faults=[fault] * 2) as server:
        reply = await ask(server, quick)
    assert (reply.value, reply.attempts, reply.usage) == (
        Verdict(**VERDICT),
        3,
        Usage(300, 180, 30),
    )


async def test_empty_text_is_asked_for_again(quick):
    """An empty reply is not an answer, with or without a template."""
    with JudgeServer("text", faults=[faults.content("")]) as server:
        reply = await ask(server, quick, question(template=None))
    assert (reply.text, reply.attempts) == ("text", 2)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (faults.refusal("I can't."), "I can't."),
        (faults.content_filter(), "content filter"),
        (faults.azure_content_filter(), "content management policy"),
    ],
)
async def test_a_declined_request_is_no_error_and_no_verdict(quick, fault, words):
    """A refusal comes back as such, without a repair."""
    with JudgeServer(faults=[fault]) as server:
        reply = await ask(server, quick)
    assert words in reply.declined
    assert reply.value is None
    assert len(server.requests) == 1


class CountingLimit(asyncio.Semaphore):
    """A semaphore that says when it was left."""

    def __init__(self, value):
        super().__init__(value)
        self.left = asyncio.Event()

    async def __aexit__(self, *error):
        await super().__aexit__(*error)
        self.left.set()


async def test_the_limit_is_not_held_while_waiting():
    """One request waits half a minute for its retry; the other passes through a limit of one."""
    limit = CountingLimit(1)
    retry = RetryPolicy(tries=3, total_s=60)
    with JudgeServer(faults=[faults.status(503, headers={"Retry-After": "30"})]) as server:
        async with AsyncOpenAIClient(base_url=server.base_url, retry=retry) as client:
            waiting = asyncio.create_task(client.chat(question(messages=TEXT), limit))
            await limit.left.wait()
            reply = await client.chat(question(messages=TEXT), limit)
            assert reply.value == Verdict(**VERDICT)
            assert not waiting.done()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting


async def test_the_limit_holds_for_requests(quick):
    """Ten questions and their retries through a limit of two: never more than two at once."""
    limit = asyncio.Semaphore(2)
    with JudgeServer(faults=[faults.status(500)] * 2) as server:
        async with AsyncOpenAIClient(base_url=server.base_url, retry=quick) as client:
            await asyncio.gather(*(client.chat(question(messages=TEXT), limit) for _ in range(10)))
    assert server.most_at_once <= 2
    assert len(server.requests) == 12


async def test_two_hundred_requests_fit_at_once(monkeypatch):
    """The pool of connections lets all of them reach the server before one is answered."""
    monkeypatch.setattr(retries, "FIRST_WINDOW", 200)
    everybody = threading.Barrier(200)

    def wait_for_everybody(_body):
        everybody.wait(60)
        return VERDICT

    retry = RetryPolicy(tries=1, request_timeout_s=90)
    with JudgeServer(wait_for_everybody) as server:
        async with AsyncOpenAIClient(base_url=server.base_url, retry=retry) as client:
            replies = await asyncio.gather(
                *(client.chat(question(messages=TEXT)) for _ in range(200))
            )
    assert len(replies) == 200
    assert server.most_at_once >= 200


@pytest.mark.parametrize("tells", [True, False])
async def test_a_rate_limit_is_used_and_not_fought(tells, quick):
    """All requests are answered, and refusals do not go on.

    A minute is scaled down to 0.3 s or this machine's speed.
    """
    with JudgeServer() as server:
        async with AsyncOpenAIClient(base_url=server.base_url, retry=quick) as client:
            await client.chat(question())
            started_s = time.monotonic()
            await asyncio.gather(*(client.chat(question()) for _ in range(40)))
            window_s = max(0.3, 2 * (time.monotonic() - started_s))
    rate_limit = RateLimit(requests=40, window_s=window_s, tells=tells)
    with JudgeServer(rate_limit=rate_limit) as server:
        async with AsyncOpenAIClient(base_url=server.base_url, retry=quick) as client:
            limit = asyncio.Semaphore(200)
            replies = await asyncio.gather(*(client.chat(question(), limit) for _ in range(300)))
            slowdown = client.slowdown
    assert [reply.value for reply in replies] == [Verdict(**VERDICT)] * 300
    assert (
        len(server.requests)
        == 300 + rate_limit.refusals
        == sum(reply.attempts for reply in replies)
    )
    assert slowdown.refusals == rate_limit.refusals <= 300
    assert slowdown.in_words().startswith("rate limit: ")


async def test_a_wait_for_the_rate_limit_ends_with_its_task(quick):
    """An interrupted run does not sit out the server's minute."""
    headers = {
        "x-ratelimit-limit-requests": "1",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "1m0s",
    }
    with JudgeServer(faults=[faults.Fault(content=VERDICT, headers=headers)]) as server:
        async with AsyncOpenAIClient(base_url=server.base_url, retry=quick) as client:
            await client.chat(question())
            waiting = [asyncio.create_task(client.chat(question())) for _ in range(3)]
            await asyncio.sleep(0)
            for task in waiting:
                task.cancel()
            ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(end) for end in ended] == [asyncio.CancelledError] * 3
    assert len(server.requests) == 1


async def test_an_image_by_url_is_passed_on(quick):
    """OpenAI fetches images itself."""
    image = {"type": "image_url", "image_url": {"url": "https://town.example/map.png"}}
    with JudgeServer("text") as server:
        await ask(
            server,
            quick,
            question(template=None, messages=[{"role": "user", "content": [image]}]),
        )
    assert image_urls(server.requests[0]) == ["https://town.example/map.png"]


async def test_other_servers_need_no_key(quick, monkeypatch):
    """A local server given by the environment works without one."""
    with JudgeServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        async with AsyncOpenAIClient(retry=quick) as client:
            assert client.endpoint == f"openai {server.base_url}"
            assert (await client.chat(question())).value == Verdict(**VERDICT)


async def test_the_key_of_the_environment_is_sent(quick, monkeypatch):
    """A server that checks keys gets it."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-environment")
    with JudgeServer() as server:
        async with AsyncOpenAIClient(base_url=server.base_url, retry=quick) as client:
            await client.chat(question())
    assert server.calls[0].headers["authorization"] == "Bearer sk-from-environment"


@pytest.mark.parametrize(
    "address",
    ["localhost:8000/v1", "http:///v1", "http://judge:port/v1", "http://[::1/v1"],
)
def test_an_address_that_is_none_is_refused(address):
    """A slip in the address is not an outage."""
    with pytest.raises(
        UsageError, match=r"^the base URL given \(--judge_base_url\) is not an http"
    ):
        AsyncOpenAIClient(base_url=address)


@pytest.mark.parametrize(
    ("in_environment", "given", "status_code", "named"),
    [
        (("OPENAI_API_KEY",), ("base_url",), 401, "check OPENAI_API_KEY:"),
        ((), ("base_url",), 401, "check OPENAI_API_KEY (not set):"),
        ((), ("base_url", "api_key"), 401, "check the key given:"),
        (("OPENAI_BASE_URL",), (), 404, "check the judge model and OPENAI_BASE_URL:"),
        (
            ("OPENAI_BASE_URL",),
            ("base_url",),
            404,
            "check the judge model and the base URL given (--judge_base_url):",
        ),
    ],
)
async def test_the_setting_to_correct_is_the_one_in_use(
    quick, monkeypatch, in_environment, given, status_code, named
):
    """The message does not name a variable that is not read."""
    with JudgeServer(faults=[faults.status(status_code, "no")]) as server:
        values = {"base_url": server.base_url, "api_key": "sk-mine"}
        for name in in_environment:
            monkeypatch.setenv(name, values[name.removeprefix("OPENAI_").lower()])
        parameters = {name: values[name] for name in given}
        async with AsyncOpenAIClient(retry=quick, **parameters) as client:
            with pytest.raises(JudgeRequestError) as caught:
                await client.chat(question())
    assert named in str(caught.value)


@pytest.mark.parametrize("key", ["sk-“quoted”", "sk-one\nsk-two"])
def test_a_key_that_cannot_be_sent_is_refused(key):
    """The error comes before the run."""
    with pytest.raises(UsageError, match=r"^the key given contains characters"):
        AsyncOpenAIClient(api_key=key)


async def test_a_request_that_cannot_be_made_is_the_judges_failure(quick):
    """An error of a library never passes for a failed check."""
    with JudgeServer() as server:
        text = await failure(server, quick, JudgeRequestError, question(extra={"seed": {1, 2}}))
    assert "not JSON serializable" in text
    assert server.requests == []


async def test_a_server_is_shown_as_many_images_as_it_takes(quick):
    images = [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{n}aGk"}}
        for n in range(5)
    ]
    message = {"role": "user", "content": [*images, {"type": "text", "text": "?"}]}
    refused = faults.status(400, "At most 2 image(s) may be provided in one request.")
    with JudgeServer(faults=lambda body: refused if len(image_urls(body)) > 2 else None) as server:
        async with AsyncOpenAIClient(base_url=server.base_url, retry=quick) as client:
            replies = [await client.chat(question(messages=[message])) for _ in range(2)]
    assert [reply.images for reply in replies] == [2, 2]
    assert [len(image_urls(body)) for body in server.requests] == [5, 2, 2]


async def test_strings_are_sent_to_a_server_that_wants_them(quick):
    messages = [{"role": "user", "content": [{"type": "text", "text": part} for part in "ab"]}]

    def refuse_lists(body):
        is_list = any(isinstance(message["content"], list) for message in body["messages"])
        return faults.status(400, "message[0].content must be a string") if is_list else None

    with JudgeServer(faults=refuse_lists) as server:
        async with AsyncOpenAIClient(
            base_url=server.base_url, api_key="sk-test", retry=quick
        ) as client:
            for _ in range(2):
                assert (await client.chat(question(messages=messages))).value == Verdict(**VERDICT)
        contents = [body["messages"][0]["content"] for body in server.requests]
    assert contents == [messages[0]["content"], "a\nb", "a\nb"]
