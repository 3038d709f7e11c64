"""Failed requests and rate-limit headers, in the formats of many servers."""

import json

import pytest

from mind2web2.errors import (
    ContextTooLongError,
    JudgeAccessError,
    JudgeRequestError,
    JudgeUnavailableError,
)
from mind2web2.llm_client.failures import failure_from_body
from mind2web2.llm_client.judge_errors import judge_error
from mind2web2.llm_client.settings import Service
from mind2web2.utils.shown_text import one_line

SERVICE = Service("openai http://localhost/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL", ("sk-secret",))


def body(message="no", **error):
    """Return OpenAI's error object."""
    return json.dumps({"error": {"message": message, **error}})


@pytest.mark.parametrize(
    ("status", "text", "error_class", "words"),
    [
        (401, body("Incorrect API key"), JudgeAccessError, "check OPENAI_API_KEY"),
        (403, body("Country not supported"), JudgeAccessError, "check OPENAI_API_KEY"),
        (
            404,
            body("The model `o9` does not exist"),
            JudgeAccessError,
            "OPENAI_BASE_URL",
        ),
        (400, body("Unknown parameter"), JudgeRequestError, "parameters"),
        (422, json.dumps({"detail": [{"msg": "bad"}]}), JudgeRequestError, "bad"),
        (402, body("Insufficient credits"), JudgeAccessError, "quota"),
        (
            429,
            body("You exceeded your current quota", code="insufficient_quota"),
            JudgeAccessError,
            "quota",
        ),
        (
            429,
            body("Request too large for gpt-4o on TPM"),
            JudgeRequestError,
            "rate limit",
        ),
        (429, body("Rate limit reached"), JudgeUnavailableError, "429"),
        (408, "", JudgeUnavailableError, "408"),
        (409, "", JudgeUnavailableError, "409"),
        (500, "<html><body>oops</body></html>", JudgeUnavailableError, "HTML page"),
        (529, body("Overloaded"), JudgeUnavailableError, "Overloaded"),
        (
            400,
            body("x", code="context_length_exceeded"),
            ContextTooLongError,
            "too long",
        ),
        (
            400,
            json.dumps({"message": "Input is too long for requested model."}),
            ContextTooLongError,
            "too long",
        ),
        (
            400,
            body("prompt is too long: 210000 tokens > 200000 maximum"),
            ContextTooLongError,
            "too long",
        ),
        (
            400,
            json.dumps({"error": "request exceeds the context window"}),
            ContextTooLongError,
            "too long",
        ),
        (
            500,
            body("the request exceeds the available context size"),
            ContextTooLongError,
            "too long",
        ),
        (413, "", ContextTooLongError, "413"),
    ],
)
def test_each_status_ends_as_its_error(status, text, error_class, words):
    """Class and text of the error name the cure, on one line."""
    error = judge_error(failure_from_body(status, text), SERVICE, "judge-1")
    assert type(error) is error_class
    assert words in str(error)
    assert "\n" not in str(error)
    assert "judge-1" in str(error) and SERVICE.endpoint in str(error)


def test_a_request_that_is_too_long_names_both_cures():
    """A longer context, or less of the pages."""
    failure = failure_from_body(400, body("x", code="context_length_exceeded"))
    message = str(judge_error(failure, SERVICE, "judge-1"))
    assert "longer context (--judge_model)" in message
    assert "--no_screenshots" in message and "max_text_chars" in message


SPENT = "You exceeded your current quota, please check your plan and billing details."


@pytest.mark.parametrize(
    ("text", "more", "can_pass"),
    [
        (body(SPENT), {}, False),
        (body(SPENT), {"retry_after_s": 34.0}, True),
        (body(SPENT), {"retry_after_s": 86_400.0}, False),
        (
            body(f"{SPENT} Please retry in 34.07s.", status="RESOURCE_EXHAUSTED"),
            {},
            True,
        ),
        (
            json.dumps([{"error": {"message": SPENT, "details": [{"retryDelay": "34s"}]}}]),
            {},
            True,
        ),
        (
            body(SPENT, code="insufficient_quota"),
            {"retry_after_s": 34.0},
            False,
        ),
    ],
)
def test_a_quota_that_is_open_again_soon_is_not_spent(text, more, can_pass):
    """Limits by the minute are worded as quotas too.

    A code that speaks of money tells them apart.
    """
    failure = failure_from_body(429, text, **more)
    assert (failure.can_pass, failure.is_too_fast, failure.is_quota_spent) == (
        can_pass,
        can_pass,
        not can_pass,
    )
    error = judge_error(failure, SERVICE, "judge-1")
    assert isinstance(error, JudgeUnavailableError if can_pass else JudgeAccessError)


@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [
        (400, body("filtered", code="content_filter"), True),
        (
            400,
            body(
                "flagged as potentially violating our usage policy",
                code="invalid_prompt",
            ),
            True,
        ),
        (403, body("requires moderation and your input was flagged"), True),
        (400, body("temperature is not supported"), False),
        (500, body("filtered", code="content_filter"), False),
    ],
)
def test_a_content_filter_differs_from_a_bad_request(status, text, expected):
    assert failure_from_body(status, text).is_declined is expected


def test_a_secret_never_reaches_an_error_text():
    """A server that sends the key back does not put it into logs."""
    failure = failure_from_body(401, body("no such key: sk-secret"), secrets=SERVICE.secrets)
    assert "sk-secret" not in str(judge_error(failure, SERVICE, "judge-1"))


def test_a_request_sent_back_is_not_read_as_the_servers_words():
    """A page that speaks of context windows does not make a validation error a matter of length."""
    sent_back = {
        "detail": [
            {
                "loc": ["body", "foo"],
                "msg": "not allowed",
                "input": "the context window",
            }
        ]
    }
    failure = failure_from_body(422, json.dumps(sent_back))
    assert not failure.is_too_long
    assert "not allowed" in str(failure) and "foo" in str(failure)


def test_a_phrase_far_into_a_long_text_is_found():
    assert failure_from_body(400, body("x " * 500 + "maximum context length")).is_too_long


def test_a_long_text_is_shortened():
    """An error stays readable whatever a server sends."""
    assert len(one_line("word " * 1000)) == 300


@pytest.mark.parametrize(
    ("status", "text", "fault"),
    [
        # vLLM, also behind LMDeploy and Azure AI
        (400, "At most 1 image(s) may be provided in one request.", "too many"),
        (400, "facebook/opt-125m is not a multimodal model None", "none taken"),
        # OpenAI and Azure
        (
            400,
            "Invalid content type. image_url is only supported by certain models.",
            "none taken",
        ),
        (400, "Too many images in request. Max is 10.", "too many"),
        (
            400,
            "Exceeded maximum number of images (50) allowed in the request.",
            "too many",
        ),
        (
            400,
            "You uploaded an unsupported image. Please make sure your image is valid.",
            None,
        ),
        # Claude, also on Bedrock
        (
            400,
            "messages.43.content.6.image.source.base64.data: At least one of the image "
            "dimensions exceed max allowed size for many-image requests: 2000 pixels",
            None,
        ),
        (
            400,
            "messages.58.content.2.image.source.base64: image exceeds 5 MB maximum: 6 MB",
            None,
        ),
        (400, "too many images and documents: 120 + 0 > 100", "too many"),
        (400, "Too much media: 0 document pages + 107 images > 100", "too many"),
        (400, "Could not process image", None),
        # llama.cpp, Ollama, LM Studio
        (
            500,
            "image input is not supported - hint: you may need to provide the mmproj",
            "none taken",
        ),
        (
            500,
            'Failed to parse messages: Unsupported content part type: "image_url"',
            "none taken",
        ),
        (500, "this model is missing data required for image input", "none taken"),
        (400, "this model does not support image input (ref: 1)", "none taken"),
        (500, "vision model only supports a single image per message", "too many"),
        (
            400,
            "Model does not support images. Please use a model that does.",
            "none taken",
        ),
        (
            400,
            "Vision add-on is not loaded, but images were provided for processing",
            "none taken",
        ),
        # DeepSeek, Groq, OpenRouter, Gemini, others
        (
            400,
            "messages[466]: unknown variant `image_url`, expected `text` at line 1 column 9",
            "none taken",
        ),
        (
            400,
            "Too many images provided. This model supports up to 5 images",
            "too many",
        ),
        (404, "No endpoints found that support image input", "none taken"),
        (404, "The model `x` does not exist", None),
        (
            400,
            "The request contains too many images: 11 images were provided, but 10 images at most",
            "too many",
        ),
        (
            400,
            "Request contains 52 images, exceeding the maximum of 50 allowed per request",
            "too many",
        ),
        (500, "too many images in the message, max allowed is 16", "too many"),
        (400, "Image input is not enabled for this model", "none taken"),
        (
            422,
            "body.messages.1.content.list[TextContentPart].0.type Input should be 'text'",
            "none taken",
        ),
        (413, "Request exceeds the maximum size", "too many"),
        # about something else
        (
            400,
            "This model's maximum context length is 8192 tokens, images included",
            None,
        ),
        (
            400,
            "The decoder prompt is longer than the maximum model length of 8192, with 5 images",
            None,
        ),
        (500, "The server had an error", None),
        (429, "Too many images per minute", None),
    ],
)
def test_image_faults_are_recognised(status, text, fault):
    failure = failure_from_body(status, body(text))
    assert failure.image_fault == fault
    assert not (fault and failure.can_pass)


@pytest.mark.parametrize(
    ("status", "text", "is_wanted"),
    [
        (
            400,
            "'messages.0' : for 'role:system' [('messages.0.content' : value must be a string)]",
            True,
        ),
        (400, "message[4].content must be a string", True),
        (
            422,
            "messages[2]: invalid type: sequence, expected a string at line 1 column 2901",
            True,
        ),
        (
            422,
            "messages[1]: did not match any variant of untagged enum ChatCompletionRequestContent",
            True,
        ),
        (500, 'can only concatenate str (not "list") to str', True),
        (422, "body.messages.0.content Input should be a valid string", True),
        (
            400,
            "json: cannot unmarshal array into Go struct field .messages.content of type string",
            True,
        ),
        (400, "Invalid value for 'content': expected a string, got null.", True),
        (400, "'reasoning_effort' must be a string", False),
        (400, "no such parameter", False),
    ],
)
def test_servers_that_want_strings(status, text, is_wanted):
    assert failure_from_body(status, body(text)).wants_strings is is_wanted
