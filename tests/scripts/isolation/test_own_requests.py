"""Requests of a script's own, as the run answers them."""

import pytest

from mind2web2.errors import ContextTooLongError, JudgmentMissingError
from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import JudgmentStore
from mind2web2.llm_client.chat import ChatReply
from mind2web2.scripts.isolation.messages import SentRequest
from mind2web2.scripts.isolation.service import RunService

IMAGE = {"type": "image_url", "image_url": {"url": "https://a.example/x.png"}}
OWN = SentRequest("o9", [{"role": "user", "content": [IMAGE]}], None, None, None, {})


class Provider:
    endpoint = "openai http://localhost/v1"

    def __init__(self, failure=None):
        self.failure = failure
        self.requests = []

    async def chat(self, request, limit=None):  # noqa: ARG002
        self.requests.append(request)
        if self.failure is not None:
            raise self.failure
        return ChatReply(text="yes")


@pytest.fixture
def service(tmp_path):
    """Return a function that gives what answers a script's questions with a provider's replies."""
    with JudgmentStore(tmp_path / "judgments.sqlite") as store:

        def of(provider, spec=None):
            run = CachingJudge(spec or JudgeSpec("o9"), provider, store)
            return RunService(None, AnswerJudge(run, ("task", "answer_1.md")))

        yield of


async def test_a_request_that_a_replay_lacks_costs_the_answer_its_result(service):
    asked = service(None)
    with pytest.raises(JudgmentMissingError) as caught:
        await asked.chat(OWN, 1)
    assert asked.judge.failure is caught.value


async def test_a_request_that_is_too_long_costs_the_answer_its_result(service):
    asked = service(Provider(ContextTooLongError("too long")))
    with pytest.raises(ContextTooLongError):
        await asked.chat(OWN, 1)
    assert isinstance(asked.judge.failure, ContextTooLongError)


async def test_a_judge_without_images_is_shown_none_of_a_script(service):
    provider = Provider()
    await service(provider, JudgeSpec("o9", max_images=0)).chat(OWN, 1)
    [part] = provider.requests[0].messages[0]["content"]
    assert part == {"type": "text", "text": "[An image is left out here.]"}
