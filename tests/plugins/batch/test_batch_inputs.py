"""Questions on their way into a batch job's input: they hold no body while they wait."""

import asyncio
import tracemalloc

from mind2web2.llm_client.transport import JsonBody
from mind2web2.plugins.batch.state import BatchFolder, Collector, line_frame
from mind2web2.prompts import HashedText

PAGE = HashedText("data:image/jpeg;base64," + "A" * 1_000_000).prepare()
URL = "/v1/chat/completions"


def body(number):
    """Return a request about the page."""
    parts = [
        {"type": "image_url", "image_url": {"url": PAGE}},
        {"type": "text", "text": f"Is it {number}?"},
    ]
    return JsonBody({"model": "gpt-4o"}, [{"role": "user", "content": parts}])


async def asked(collector, number):
    """Hand a question in."""
    question = await collector.identify(f"question-{number}", lambda: body(number))
    await collector.add(question, lambda: body(number))
    return question


async def test_questions_on_one_page_hold_it_once(tmp_path):
    """Thirty bodies of a megabyte each are written without ever being in memory together."""
    collector = Collector(BatchFolder(tmp_path), URL, 1000, 10**9)
    tracemalloc.start()
    try:
        questions = await asyncio.gather(*(asked(collector, number) for number in range(30)))
        held_bytes, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    [job_input] = await collector.due(0.02, lambda: False)
    assert sorted(job_input.questions) == sorted(questions)
    assert job_input.path.stat().st_size > 30_000_000
    assert held_bytes < 1_000_000
    assert most_bytes < 10_000_000


async def test_a_line_holds_the_body_as_it_is_sent(tmp_path):
    """In the endpoint's frame, and named by the hash of the body."""
    collector = Collector(BatchFolder(tmp_path), URL, 1000, 10**9)
    question = await asked(collector, 7)
    [job_input] = await collector.due(0.02, lambda: False)
    opening, closing = line_frame("question-7", URL)
    assert job_input.path.read_bytes() == opening + bytes(body(7)) + closing
    assert question == ("question-7", body(7).sha256())


async def test_half_a_line_is_taken_back(tmp_path):
    """The disk was full halfway through; the lines before and after are whole."""
    job_input = BatchFolder(tmp_path).new_input()

    def broken():
        yield b"half"
        raise OSError(28, "No space left on device")

    job_input.write(("a", "1"), [b"first", b" line\n"])
    for attempt in (("b", "2"), ("c", "3")):
        try:
            job_input.write(attempt, broken())
        except OSError:
            continue
    job_input.write(("d", "4"), [b"last line\n"])
    assert job_input.path.read_bytes() == b"first line\nlast line\n"


async def test_a_full_input_is_due_at_once(tmp_path):
    """The rest waits until nobody has another question."""
    collector = Collector(BatchFolder(tmp_path), URL, 2, 10**9)
    await asyncio.gather(*(asked(collector, number) for number in range(3)))
    [full] = await collector.due(60.0, lambda: False)
    [rest] = await collector.due(0.02, lambda: False)
    assert (len(full.questions), len(rest.questions)) == (2, 1)


async def test_an_input_is_due_when_no_pass_is_at_work(tmp_path):
    collector = Collector(BatchFolder(tmp_path), URL, 1000, 10**9)
    at_work = iter((True, True, False))
    await asked(collector, 1)
    [job_input] = await collector.due(0.005, lambda: next(at_work))
    assert len(job_input.questions) == 1
    assert next(at_work, None) is None
