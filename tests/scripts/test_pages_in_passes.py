"""A script sees and stores in its page cache the same as in program order."""

import asyncio

import pytest
from evaluations import OTHER, PAGE
from generated_scripts import without_times
from projects import ClaimJudge, Project, evaluate, read_json

from mind2web2.pages.captures import SharedCaptures

VERIFY = f"await evaluator.verify('first', evaluator.add_leaf('l', 'd'), '{PAGE}')\n"
AGAIN = f"await evaluator.verify('second', evaluator.add_leaf('l2', 'd'), '{PAGE}')\n"
SEEN = (
    "evaluator.add_custom_node(seen, 'seen', 'd', critical=False)\nreturn evaluator.get_summary()\n"
)
RUN_AGAIN = "logger.info('%s', repr(evaluator.find_node('l2')))\n"
LOOK = "def look(cache):\n    return getattr(cache, 'h' + 'as')({url!r}) is not None\n"
PUT = f"def put(name):\n    getattr(cache, name)('{PAGE}', 'other text', None)\n"


class Browser:
    """Captures any page after a few turns of the loop, and keeps which."""

    def __init__(self):
        self.captured = []

    async def capture_page(self, url, logger):  # noqa: ARG002
        """Return a text."""
        for _ in range(40 if url == PAGE else 2):
            await asyncio.sleep(0)
        self.captured.append(url)
        return None, f"what {url} says"


async def outcome(folder, body, ahead):
    """Return what matters of an evaluation: its tree, its pages and what the judge was asked."""
    project = Project(folder / f"{ahead}")
    project.add_answer()
    project.add_script_body(body)
    judge = ClaimJudge()
    [done] = await evaluate(project, judge, captures=SharedCaptures.by(Browser()), ahead=ahead)
    assert done.reason is None
    [path] = project.result_paths()
    result = read_json(path)
    return (
        without_times(result["eval_breakdown"]),
        result["provenance"]["pages"],
        sorted(judge.claims),
    )


@pytest.mark.parametrize(
    "body",
    [
        f"{LOOK.format(url=PAGE)}{VERIFY}seen = look(cache)\n{SEEN}",
        f"{VERIFY}look = cache.has\nseen = look('{PAGE}') is not None\n{SEEN}",
        f"{VERIFY}seen = '{PAGE}' in cache.get_all_urls() and cache.summary()['web_pages'] == "
        f"1\n{SEEN}",
        f"def text():\n    return cache.get_web('{PAGE}')[0]\n{VERIFY}seen = 'says' in "
        f"text()\n{SEEN}",
        # The first attempt captured the page, which is missing at this point in program order.
        f"seen = cache.has('{PAGE}') is None\n{VERIFY}{AGAIN}{RUN_AGAIN}{SEEN}",
        f"seen = not cache.summary()['total_urls']\n{VERIFY}{AGAIN}{RUN_AGAIN}{SEEN}",
        # Captured ahead of time only.
        f"{LOOK.format(url=OTHER)}"
        f"await evaluator.verify('c', evaluator.add_leaf('l', 'd'), ['{PAGE}', '{OTHER}'])\n"
        f"seen = not look(cache)\n{SEEN}",
        # Stored after a verification was asked for.
        f"{PUT}{VERIFY}put('put_web')\n{AGAIN}seen = True\n{SEEN}",
        f"{PUT}{VERIFY}put('put_' + 'web')\n{AGAIN}seen = True\n{SEEN}",
        f"{PUT}{VERIFY}put('put_' + 'web')\n{AGAIN}{RUN_AGAIN}seen = True\n{SEEN}",
        f"{VERIFY}getattr(cache, 'cl' + 'ear')()\nseen = cache.has('{PAGE}') is None\n{SEEN}",
        f"{VERIFY}cache.clear()\n{AGAIN}{RUN_AGAIN}seen = cache.has('{PAGE}') is None\n{SEEN}",
    ],
)
async def test_pages_are_seen_and_stored_as_in_program_order(tmp_path, body):
    expected = await outcome(tmp_path, body, None)
    for ahead in ("values", "gates"):
        assert await outcome(tmp_path, body, ahead) == expected


async def test_no_question_waits_for_the_first_one_about_its_page(tmp_path):
    """All five questions are asked before any has its reply.

    No request of its own warms a page's prefix.
    """
    project = Project(tmp_path)
    project.add_answer()
    project.cache().put_web(PAGE, "a text", None)
    project.add_script_body(
        "for n in range(5):\n"
        f"    await evaluator.verify(f'claim {{n}}', evaluator.add_leaf(f'l{{n}}', 'd'), "
        f"'{PAGE}')\n"
        "return evaluator.get_summary()\n"
    )
    all_are_asked = asyncio.Event()

    async def verdict(_claim):
        if len(set(judge.claims)) == 5:
            all_are_asked.set()
        await all_are_asked.wait()
        return True

    judge = ClaimJudge(verdict)
    [done] = await evaluate(project, judge)
    assert (done.reason, len(judge.claims)) == (None, 10)
