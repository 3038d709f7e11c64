"""Questions in batch jobs: the real SDK against a server with files and batches endpoints."""

import asyncio
import json
import math
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest
from projects import QUICK_RETRY
from pydantic import BaseModel
from servers import judge_server as faults
from servers.batch_server import BatchServer, Ending
from servers.judge_server import VERDICT, JudgeServer, prompt_text
from servers.local_http import Answer, LocalHttp
from servers.tcp_server import silence, tcp_server

from mind2web2.errors import (
    ContextTooLongError,
    JudgeAccessError,
    JudgeError,
    JudgeOutputError,
    JudgeRequestError,
    JudgeUnavailableError,
    UsageError,
)
from mind2web2.judge.judgment import judgment_key
from mind2web2.llm_client.base_client import AsyncOpenAIClient
from mind2web2.llm_client.chat import ChatRequest, Usage
from mind2web2.llm_client.failures import RequestFailedError
from mind2web2.plugins.batch.endpoints import BatchPace, BatchTransfer, batch_endpoints
from mind2web2.plugins.batch.jobs import BatchClient, BatchJobs
from mind2web2.plugins.batch.state import BatchFolder

PACE = BatchPace(pause_s=0.05, first_poll_s=0.005, longest_poll_s=0.02, retry=QUICK_RETRY)


class Verdict(BaseModel):
    """The template."""

    reasoning: str
    result: bool


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    """Keep the machine's own keys out."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-tests")


@pytest.fixture
def batches(tmp_path):
    """Return how to open the jobs of a server, those of an earlier run included."""

    @asynccontextmanager
    async def opened(server, pace=PACE, **settings):
        endpoints = batch_endpoints("openai", server.base_url)
        async with BatchJobs(
            endpoints, BatchFolder(tmp_path / "batches"), "gpt-4o", pace, **settings
        ) as jobs:
            yield BatchClient(jobs)

    return opened


def question(text="Is it so?", **more):
    """Return a request as a run's judge makes it, named by its key."""
    request = ChatRequest("gpt-4o", [{"role": "user", "content": text}], Verdict, **more)
    return replace(request, name=judgment_key(request, 1))


async def all_replies(client, *texts):
    """Ask everything at the same time: texts, or requests."""
    requests = [question(text) if isinstance(text, str) else text for text in texts]
    return await asyncio.gather(*map(client.chat, requests))


def files_in(folder):
    """Return the names of a run's files, without its lock."""
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


async def cancelled_at(server, job_number, work):
    """Cancel work once it polls a held job, then release the job."""
    task = asyncio.create_task(work)
    await asyncio.to_thread(server.wait_until_looked_at, job_number)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    server.held_from = math.inf


async def stopped(batches, server, *texts):
    """Ask, and cancel as Ctrl-C does once the provider has the job."""

    async def run():
        async with batches(server) as client:
            await all_replies(client, *texts)

    server.held_from = len(server.jobs) + 1
    await cancelled_at(server, server.held_from, run())


async def test_a_server_that_says_nothing_is_given_up(tmp_path):
    """The check before a run has the time limit of each other request."""
    retry = replace(QUICK_RETRY, tries=2, request_timeout_s=0.1)
    async with tcp_server(silence) as silent:
        endpoints = batch_endpoints("openai", f"http://127.0.0.1:{silent.port}/v1")
        folder, pace = BatchFolder(tmp_path), replace(PACE, retry=retry)
        with pytest.raises(RequestFailedError, match=r"no answer within 0\.1 s"):
            await BatchTransfer(endpoints, folder, pace).check()
        await endpoints.close()
    assert silent.connections == 3


async def test_concurrent_questions_are_one_job(batches, tmp_path):
    """Its lines are named by the judgment's key and hold the body of a direct request."""
    reply = lambda body: {"reasoning": prompt_text(body), "result": True}  # noqa: E731
    texts = [f"Is it {number}?" for number in range(30)]
    with BatchServer(reply) as server:
        async with batches(server) as client:
            replies = await all_replies(client, *texts)
        async with AsyncOpenAIClient(base_url=server.base_url) as direct:
            directly = await direct.chat(question(texts[0]))
        [job] = server.jobs
        in_job, sent_directly = server.requests[0], server.requests[-1]
    assert [reply.value.reasoning.strip() for reply in replies] == texts
    assert {line["custom_id"] for line in job.requests} == {question(text).name for text in texts}
    assert sent_directly in [line["body"] for line in job.requests]
    assert in_job.keys() == sent_directly.keys()
    assert replies[0] == directly
    assert replies[0].usage == Usage(100, 60, 10)
    assert files_in(tmp_path / "batches") == []


async def test_dependent_questions_take_a_job_each(batches):
    """As many as the chain is long, however wide it is."""
    with BatchServer() as server:
        async with batches(server) as client:
            await all_replies(client, "a1", "a2", "a3")
            await all_replies(client, "b1", "b2")
        assert [len(job.requests) for job in server.jobs] == [3, 2]


async def test_jobs_keep_to_the_limits_of_a_file(batches):
    """By number and by size; a full one does not wait for quiet."""
    texts = [f"Is it {number}?" for number in range(7)]
    with BatchServer() as server:
        async with batches(server, replace(PACE, most_requests=3)) as client:
            await all_replies(client, *texts)
        assert sorted(len(job.requests) for job in server.jobs) == [1, 3, 3]
        size = max(server.sizes_bytes) // 3
        async with batches(server, replace(PACE, most_bytes=size * 2)) as client:
            await all_replies(client, *texts)
        assert max(len(job.requests) for job in server.jobs[3:]) <= 2
        assert len(server.asked) == 14


async def test_a_stopped_run_is_continued(batches, tmp_path):
    """Pending questions are not sent again; used replies are removed."""
    with BatchServer() as server:
        await stopped(batches, server, "a", "b", "c")
        assert files_in(tmp_path / "batches") == ["00001.json"]
        async with batches(server) as client:
            replies = await all_replies(client, "a", "b", "c", "d")
        assert [len(job.requests) for job in server.jobs] == [3, 1]
    assert all(reply.value.result for reply in replies)
    assert files_in(tmp_path / "batches") == []


async def test_a_stopped_question_has_made_no_request(batches):
    """The run that fetches its reply counts it, and it is to be counted once."""
    first, second = question("a"), question("a")
    with BatchServer() as server:
        await stopped(batches, server, first)
        async with batches(server) as client:
            await client.chat(second)
    assert first.sent.usage == Usage()
    assert second.sent.usage == Usage(100, 60, 10, requests=1)


async def test_unused_replies_are_kept(batches, tmp_path):
    """A later run may need them."""
    with BatchServer() as server:
        await stopped(batches, server, "a", "b")
        async with batches(server) as client:
            await client.chat(question("a"))
        assert files_in(tmp_path / "batches") == ["00001.json", "00001.results.jsonl"]
        record = json.loads((tmp_path / "batches" / "00001.json").read_bytes())
        assert list(record["questions"]) == [question("b").name]
        async with batches(server) as client:
            await client.chat(question("b"))
        assert len(server.asked) == 2
    assert files_in(tmp_path / "batches") == []


def forget_batch_id(folder):
    """Change the record as if the run was killed before the provider confirmed the job."""
    path = folder / "00001.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"batch_id": None}))


async def test_a_job_that_was_sent_but_not_noted_is_found(batches, tmp_path):
    """The run was killed between the two; the provider's list, several pages long, has it."""
    with BatchServer() as server:
        for text in "vwxyz":
            async with batches(server) as client:
                await client.chat(question(text))
        await stopped(batches, server, "a")
        server.jobs.insert(0, server.jobs.pop())  # the oldest: last on the list
        forget_batch_id(tmp_path / "batches")
        async with batches(server) as client:
            await client.chat(question("a"))
        assert len(server.jobs) == 6


async def test_a_creation_whose_reply_is_lost_is_not_repeated(batches):
    """The job is looked for before it is sent again."""
    with BatchServer(lost_replies=1) as server:
        async with batches(server) as client:
            await all_replies(client, "a", "b")
        assert [len(job.requests) for job in server.jobs] == [2]


@pytest.mark.parametrize(
    "ending",
    [
        Ending("failed", error=("server_error", "The batch could not be processed.")),
        Ending("expired", answered=0),
        Ending("expired", answered=2),
        Ending(damage=lambda content: content[: len(content) // 2]),
        Ending(damage=lambda _: b"<html>not here</html>\n"),
        Ending(
            damage=lambda content: content.replace(b'"choices"', b'"choises"', 1).replace(
                b"{", b"[", 1
            )
        ),
    ],
)
async def test_questions_without_a_reply_are_sent_again(batches, ending):
    with BatchServer(endings=[ending]) as server:
        async with batches(server) as client:
            replies = await all_replies(client, "a", "b", "c", "d")
        first, second = server.jobs
        again = {request["custom_id"] for request in second.requests}
    assert all(reply.value.result for reply in replies)
    assert again <= {request["custom_id"] for request in first.requests}
    assert len(again) == (2 if ending.answered else len(again))


async def test_a_job_that_keeps_failing_is_given_up(batches, caplog):
    """After some rounds, with the provider's words, in a line for each job."""
    ending = Ending("failed", error=("server_error", "The batch could not be processed."))
    with BatchServer(endings=[ending] * 20) as server:
        async with batches(server) as client:
            outcomes = await asyncio.gather(
                *(client.chat(question(text)) for text in "abc"), return_exceptions=True
            )
        assert len(server.jobs) == 4
    assert {type(outcome) for outcome in outcomes} == {JudgeUnavailableError}
    assert "batch 4 (batch_4) is failed: server_error The batch could not be processed." in str(
        outcomes[0]
    )
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 4


async def test_a_job_that_could_not_be_sent_tells_of_no_requests(batches):
    """It is not known how often the provider was called for each question in it."""

    def refusals(method, path):  # noqa: ARG001
        return faults.status(500, "down") if method == "POST" else None

    with BatchServer(refusals=refusals) as server:
        async with batches(server) as client:
            with pytest.raises(
                JudgeUnavailableError, match=r"unavailable: 500 down; try again later"
            ):
                await client.chat(question())


async def test_a_model_without_batches_fails_at_once(batches):
    """It would fail again."""
    ending = Ending(
        "failed",
        error=("model_not_found", "The model is not supported by the Batch API."),
    )
    with BatchServer(endings=[ending] * 2) as server:
        async with batches(server) as client:
            with pytest.raises(
                JudgeRequestError,
                match=r"check the judge model .* not supported by the Batch",
            ):
                await client.chat(question())
        assert len(server.jobs) == 1


async def test_a_job_cancelled_by_a_person_is_not_sent_again(batches):
    """Its replies count, and the next run asks for the rest."""
    with BatchServer(endings=[Ending("cancelled", answered=2)]) as server:
        async with batches(server) as client:
            asking = (client.chat(question(text)) for text in "abc")
            outcomes = await asyncio.gather(*asking, return_exceptions=True)
        assert len(server.jobs) == 1
        async with batches(server) as client:
            await client.chat(question(prompt_text(server.jobs[0].requests[2]["body"]).strip()))
        assert len(server.jobs) == 2
    [error] = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert isinstance(error, JudgeUnavailableError)
    assert "batch 1 (batch_1) is cancelled at the provider" in str(error)


async def test_a_job_with_too_many_tokens_is_split(batches):
    """OpenAI bounds the tokens that an account has waiting; halves follow one another."""
    too_many = Ending("failed", error=("token_limit_exceeded", "Enqueued token limit reached"))
    with BatchServer(endings=[too_many, too_many]) as server:
        async with batches(server) as client:
            replies = await all_replies(client, *"abcdefgh")
        sizes = [len(job.requests) for job in server.jobs]
    assert all(reply.value.result for reply in replies)
    assert sizes[:2] == [8, 4]
    assert max(sizes[2:]) <= 4 and sum(sizes[2:]) == 8


async def test_a_single_request_with_too_many_tokens_fails(batches):
    """There is no smaller part."""
    too_many = Ending("failed", error=("token_limit_exceeded", "Enqueued token limit reached"))
    with BatchServer(endings=[too_many] * 9) as server:
        async with batches(server) as client:
            with pytest.raises(JudgeRequestError, match="Enqueued token limit reached"):
                await client.chat(question())
        assert len(server.jobs) == 1


async def test_a_request_that_fails_for_now_goes_out_again(batches):
    """A rate limit, an error of the server, a lost connection within the job."""
    trouble = [
        faults.rate_limited(),
        faults.status(500, "oops"),
        faults.drop_before_reply(),
        None,
    ]
    with BatchServer(faults=trouble) as server:
        async with batches(server) as client:
            replies = await all_replies(client, *"abcd")
        assert [len(job.requests) for job in server.jobs] == [4, 3]
    assert all(reply.value.result for reply in replies)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (faults.context_too_long(), ContextTooLongError),
        (faults.status(400, "no such parameter"), JudgeRequestError),
        (faults.status(429, "quota", code="insufficient_quota"), JudgeRequestError),
    ],
)
async def test_a_request_that_fails_for_good_is_not_repeated(batches, fault, error):
    """Its error is the one that it would have met on its own."""
    with BatchServer(faults=[fault]) as server:
        async with batches(server) as client:
            with pytest.raises(error):
                await client.chat(question())
        assert len(server.jobs) == 1


async def test_replies_are_read_as_direct_ones(batches):
    """A refusal declines the question.

    An unfit reply is sent back for repair, and a refused parameter is left out.
    """
    trouble = [faults.refusal("not this"), faults.content("I think so."), None]
    with BatchServer(faults=trouble) as server:
        async with batches(server) as client:
            declined = await client.chat(question("a"))
            repaired = await client.chat(question("b"))
        assert [len(job.requests) for job in server.jobs] == [1, 1, 1]
        assert "Your reply cannot be used" in prompt_text(server.requests[-1])
    assert declined.declined == "refusal: not this"
    assert repaired.value == Verdict(**VERDICT)
    assert repaired.usage == Usage(200, 120, 20)
    with BatchServer(takes_temperature=False) as server:
        async with batches(server) as client:
            assert (await client.chat(question())).value == Verdict(**VERDICT)
        assert ["temperature" in body for body in server.requests] == [True, False]


async def test_a_pending_repair_is_continued(batches):
    """The unfit reply is still there, so that the same repair is asked for, and waited for."""
    with BatchServer(faults=[faults.content("I think so."), None]) as server:
        async with batches(server) as client:
            await client.chat(question("other"))  # takes the unfit reply and repairs it
        server._faults = [None] * 2 + [faults.content("I think so.")]

        async def run():
            async with batches(server) as client:
                await client.chat(question())

        server.held_from = 4
        await cancelled_at(server, 4, run())
        async with batches(server) as client:
            reply = await client.chat(question())
        assert len(server.jobs) == 4
    assert reply.value == Verdict(**VERDICT)


async def test_an_unfit_reply_is_not_used_by_the_next_run(batches):
    """The next run requests another one."""
    with BatchServer(faults=[faults.content("no")] * 3) as server:
        async with batches(server) as client:
            with pytest.raises(JudgeOutputError):
                await client.chat(question())
        async with batches(server) as client:
            assert (await client.chat(question())).value == Verdict(**VERDICT)
        assert len(server.jobs) == 4


@pytest.mark.parametrize("is_confirmed", [True, False])
async def test_overwriting_cancels_the_jobs_of_earlier_runs(batches, tmp_path, is_confirmed):
    """A job without confirmation is searched for and cancelled too; no reply is used."""
    with BatchServer() as server:
        await stopped(batches, server, "a", "b")
        if not is_confirmed:
            forget_batch_id(tmp_path / "batches")
        async with batches(server, overwrite=True) as client:
            await client.chat(question("a"))
        assert [job.status for job in server.jobs] == ["cancelled", "completed"]
        assert len(server.asked) == 3
    assert files_in(tmp_path / "batches") == []


async def test_overwriting_cancels_through_an_outage(batches):
    """One lost call would leave a job to be paid for."""
    trouble = [faults.status(503, "overloaded"), faults.drop_before_reply()]

    def refusals(_method, path):
        return trouble.pop() if path.endswith("/cancel") and trouble else None

    with BatchServer(refusals=refusals) as server:
        await stopped(batches, server, "a")
        async with batches(server, overwrite=True):
            assert [job.status for job in server.jobs] == ["cancelled"]
    assert trouble == []


async def test_overwriting_ignores_finished_jobs(batches, tmp_path):
    """The provider refuses to cancel it. Its record is deleted all the same."""
    with BatchServer() as server:
        await stopped(batches, server, "a")
        server.jobs[0].status, server.jobs[0].step = "completed", 3
        async with batches(server, overwrite=True):
            assert files_in(tmp_path / "batches") == []


async def test_overwriting_keeps_a_job_that_it_cannot_cancel(batches, tmp_path):
    """The run does not begin, and the next one tries again."""

    def refusals(_, path):
        return faults.status(503, "down") if path.endswith("/cancel") else None

    with BatchServer(refusals=refusals) as server:
        await stopped(batches, server, "a")
        with pytest.raises(JudgeUnavailableError, match="503 down"):
            await batches(server, overwrite=True).__aenter__()
        assert files_in(tmp_path / "batches") == ["00001.json"]


async def test_files_at_the_provider_are_deleted(batches):
    """The input and the results, also of a job that brought errors only in part."""
    with BatchServer(faults=[faults.status(500, "oops")]) as server:
        async with batches(server) as client:
            await all_replies(client, "a", "b")
        assert (len(server.jobs), len(server.sizes_bytes), server.files) == (2, 5, {})


async def test_replies_that_are_stored_already_are_forgotten(batches, tmp_path):
    """The run that stored them was killed before it removed them."""

    async def is_stored(key):
        return key == question("a").name

    with BatchServer() as server:
        with suppress(KeyboardInterrupt):
            async with batches(server) as client:
                await all_replies(client, "a", "b")
                raise KeyboardInterrupt
        assert files_in(tmp_path / "batches") == ["00001.json", "00001.results.jsonl"]
        async with batches(server, is_stored=is_stored) as client:
            await client.chat(question("b"))
        assert files_in(tmp_path / "batches") == []
        assert len(server.jobs) == 1


async def test_jobs_of_another_server_are_left_alone(batches, tmp_path):
    """A run with that server needs them."""
    with BatchServer() as one, BatchServer() as other:
        await stopped(batches, one, "a")
        async with batches(other) as client:
            await client.chat(question("a"))
        assert len(other.asked) == 1
        assert files_in(tmp_path / "batches") == ["00001.json"]


async def test_one_run_at_a_time(batches):
    """Two would pay for the same questions twice."""
    with BatchServer() as server:
        async with batches(server):
            with pytest.raises(
                UsageError, match=r"another run with --batch is at work in .*batches"
            ):
                await batches(server).__aenter__()


async def test_a_server_without_the_endpoints(batches):
    """The error comes before any question, with the cure."""
    refused = faults.status(401, "Incorrect key sk-secret-of-tests")
    with JudgeServer() as bare, BatchServer(refusals=lambda *_: refused) as locked:
        with pytest.raises(
            UsageError, match=r"has no batch endpoints .*: evaluate without --batch"
        ):
            await batches(bare).__aenter__()
        with pytest.raises(UsageError, match="check OPENAI_API_KEY") as caught:
            await batches(locked).__aenter__()
    assert "sk-secret" not in str(caught.value)


async def test_an_outage_of_the_endpoints_passes(batches):
    """Each call is retried; a repeated download replaces the first."""
    seen = {}

    def refusals(method, path):
        seen[method, path] = seen.get((method, path), 0) + 1
        return faults.status(503, "overloaded") if seen[method, path] == 1 else None

    with BatchServer(refusals=refusals) as server:
        async with batches(server) as client:
            replies = await all_replies(client, "a", "b")
        assert [len(job.requests) for job in server.jobs] == [2]
    assert all(reply.value.result for reply in replies)


async def test_an_outage_that_lasts_fails_the_questions_and_keeps_the_job(batches):
    """The next run fetches the results."""
    is_down = False

    def refusals(_method, path):
        return (
            faults.status(503, "overloaded") if is_down and path.startswith("/batches/") else None
        )

    with BatchServer(refusals=refusals) as server:
        is_down = True
        async with batches(server) as client:
            with pytest.raises(JudgeUnavailableError, match="503 overloaded"):
                await client.chat(question())
            with pytest.raises(JudgeUnavailableError, match="503 overloaded"):
                await client.chat(question())
        is_down = False
        async with batches(server) as client:
            assert (await client.chat(question())).value == Verdict(**VERDICT)
        assert len(server.asked) == 1


@pytest.mark.parametrize("is_confirmed", [True, False])
async def test_a_job_that_the_provider_does_not_have_is_sent_again(batches, tmp_path, is_confirmed):
    """The provider deleted it, or the run was killed before it was sent."""
    with BatchServer() as server:
        await stopped(batches, server, "a")
        server.jobs.clear()
        if not is_confirmed:
            forget_batch_id(tmp_path / "batches")
        async with batches(server) as client:
            await client.chat(question("a"))
        assert len(server.asked) == 1


async def test_a_broken_task_fails_all_waiting_questions(batches, tmp_path, caplog):
    """Here the folder is gone, under a job that is to be written down."""
    with BatchServer() as server:
        async with batches(server) as client:
            (tmp_path / "batches" / "00001.json").mkdir()
            with pytest.raises(JudgeError, match=r"IsADirectoryError|Is a directory"):
                await client.chat(question())
            with pytest.raises(JudgeError, match=r"IsADirectoryError|Is a directory"):
                await client.chat(question("other"))
    assert "batch jobs break off" in caplog.text


async def test_a_line_larger_than_any_reply_is_ignored(batches, caplog):
    """It is not read into memory; the lines beside it count."""
    long = b"{" * 64_500_000 + b"\n"
    with BatchServer(endings=[Ending(damage=lambda line: long + line)]) as server:
        async with batches(server) as client:
            assert (await client.chat(question())).value == Verdict(**VERDICT)
    assert "a damaged line of its results is ignored" in caplog.text
    assert len(server.jobs) == 1


async def test_results_have_a_largest_size(batches, tmp_path):
    """By the number of questions; what was fetched of more does not stay on the disk."""
    endless = Ending(damage=lambda line: line + b" " * 66_000_000)
    with BatchServer(endings=[endless]) as server:
        async with batches(server) as client:
            with pytest.raises(JudgeAccessError, match="larger than 65 MB"):
                await client.chat(question())
            assert list((tmp_path / "batches").glob("*.part")) == []


async def test_a_server_that_turns_no_pages_is_searched_once():
    """Its list would go on for ever."""
    page = {"data": [{"id": "batch-1", "status": "completed"}], "has_more": True}
    page["data"][0]["created_at"] = 4_000_000_000
    answer = Answer(json.dumps(page).encode())
    with LocalHttp(lambda _: answer) as server:
        endpoints = batch_endpoints("openai", server.url)
        assert await endpoints.find("another job", 0.0) is None
        await endpoints.close()
    assert len(server.requests) == 2


async def test_a_damaged_record_is_ignored(batches, tmp_path, caplog):
    """Its questions are asked again."""
    (tmp_path / "batches").mkdir()
    (tmp_path / "batches" / "00001.json").write_text("{")
    with BatchServer() as server:
        async with batches(server) as client:
            await client.chat(question())
    assert "damaged record of a batch job ignored" in caplog.text


async def test_time_does_not_count_while_a_batch_is_waited_for(tmp_path):
    """The time of the script itself counts."""
    with BatchServer() as server:
        endpoints = batch_endpoints("openai", server.base_url)
        async with BatchJobs(endpoints, BatchFolder(tmp_path / "batches"), "gpt-4o", PACE) as jobs:
            server.held_from = 1
            asking = asyncio.ensure_future(BatchClient(jobs).chat(question()))
            await asyncio.to_thread(server.wait_until_looked_at, 1)
            stood_at_s = jobs.worked_s()
            assert jobs.worked_s() == pytest.approx(stood_at_s, abs=1e-6)
            server.held_from = math.inf
            await asking
            before_s = jobs.worked_s()
            assert jobs.worked_s() > before_s


async def test_azure_has_its_own_address_and_key(tmp_path, monkeypatch):
    with BatchServer() as server:
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-key")
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT_URL", server.url)
        monkeypatch.setenv("AZURE_OPENAI_API_VERSION", "2025-03-01-preview")
        endpoints = batch_endpoints("azure_openai")
        async with BatchJobs(endpoints, BatchFolder(tmp_path / "batches"), "mine", PACE) as jobs:
            assert (await BatchClient(jobs).chat(question())).value == Verdict(**VERDICT)
        assert (server.jobs[0].endpoint, server.jobs[0].requests[0]["url"]) == (
            "/chat/completions",
        ) * 2


def test_other_providers_have_no_batches():
    """The message names those that do."""
    with pytest.raises(
        UsageError,
        match="--batch needs --llm_provider openai or azure_openai, not bedrock",
    ):
        batch_endpoints("bedrock_anthropic")
