"""Deferred verifications: at the same time, right, finished in time, and nothing left behind."""

import asyncio
import logging
import traceback

import pytest
from generated_scripts import SEQUENTIAL, RandomJudge, outcome_of
from projects import ClaimJudge, Project, evaluate, read_json

from mind2web2.errors import EvalScriptError, JudgeUnavailableError
from mind2web2.scheduling.deferral import guarded
from mind2web2.scheduling.options import MOST_PENDING, ExecutionOptions
from mind2web2.scripts.load import load_eval_script
from mind2web2.scripts.run import load_script, run_script

HEADER = """\
import asyncio
from mind2web2 import Evaluator, VerificationNode
from pydantic import BaseModel
from pydantic_core import to_jsonable_python
ATTEMPTS = []
class Holder(BaseModel):
    node: VerificationNode
class Town(BaseModel):
    name: str
def peek(node, name="__di" + "ct__"):
    return getattr(node, name).get("status")
async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger):
    ATTEMPTS.append(1)
    evaluator = Evaluator()
    root = evaluator.initialize("made_up", client=client, answer="")
    leaves = [evaluator.add_leaf(f"l{number}", "d") for number in range(6)]
    first, second = leaves[:2]
"""
FIRST_LINE = HEADER.count("\n") + 1
ALL = "    for leaf in leaves:\n        await evaluator.verify(leaf.id, leaf)\n"
END = "    return evaluator.get_summary()\n"


@guarded
class WatchedJudge(RandomJudge):
    """Supports every claim but those named, after some turns; knows how much it was asked at once."""

    turns = 10

    def __init__(self, *unsupported, fails_on=None):
        super().__init__(0, 0)
        self.unsupported = unsupported
        self.fails_on = fails_on
        self.at_once = self.most_at_once = 0
        self.claims = []

    async def ask(self, request, subject, limit):
        """Answer after a few turns."""
        self.claims.append(subject.claim)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            for _ in range(self.turns):
                await asyncio.sleep(0)
            reply = await super().ask(request, subject, limit)
        finally:
            self.at_once -= 1
        if subject.purpose != "verify":
            return reply
        if subject.claim == self.fails_on:
            raise self.fail(JudgeUnavailableError("outage"))
        reply.value.result = subject.claim not in self.unsupported
        return reply


def script(folder, body):
    """Write a script whose function does this, and return its path."""
    path = folder / "task.py"
    path.write_text(HEADER + body)
    return path


async def run(folder, body, judge, options=None):
    """Return what a script with this body comes to."""
    return await outcome_of(script(folder, body), judge, options or ExecutionOptions())


def statuses(summary):
    """Return the statuses of the leaves."""
    return [
        node["status"]
        for node in summary["eval_breakdown"][0]["verification_tree"]["children"]
    ]


async def test_verifications_without_a_used_result_run_at_the_same_time(tmp_path):
    """Six leaves, two votes each; in program order only the votes of one go together."""
    judge, in_order = WatchedJudge(), WatchedJudge()
    assert await run(tmp_path, ALL + END, judge) == await run(
        tmp_path, ALL + END, in_order, SEQUENTIAL
    )
    assert (judge.most_at_once, in_order.most_at_once) == (12, 2)


@pytest.mark.parametrize(
    "body",
    [
        "    await evaluator.batch_verify([(leaf.id, None, leaf, None) for leaf in leaves])\n",
        "    for leaf in leaves:\n        await evaluator.verifier.simple_verify(leaf.id, leaf)\n",
        "    async def each(some):\n        for leaf in some:\n"
        "            await evaluator.verify(leaf.id, leaf)\n"
        "    await each(leaves[:3])\n    await each(leaves[3:])\n",
        "    for leaf in leaves:\n        await evaluator.verify(leaf.id, leaf)\n"
        "        evaluator.add_custom_info({'a': 1}.copy())\n",
    ],
)
async def test_all_that_verifies_may_be_deferred(tmp_path, body):
    """Batches, the verifier's own methods, helpers; and common names on other objects wait for nothing."""
    judge = WatchedJudge()
    assert statuses(await run(tmp_path, body + END, judge)) == ["passed"] * 6
    assert judge.most_at_once == 12


TOWNS = "".join(
    f"    town{n} = await evaluator.extract('{n}?', Town, '{n}')\n"
    f"    evaluator.add_leaf('town{n}', 'd')\n"
    for n in range(5)
)


async def test_extractions_that_are_read_later_run_at_the_same_time(tmp_path):
    """Until the first of them is read; the results list them in the order of the calls."""
    judge, in_order = WatchedJudge(), WatchedJudge()
    body = f"{TOWNS}    await evaluator.verify(town0.name, first)\n{END}"
    summary = await run(tmp_path, body, judge)
    assert summary == await run(tmp_path, body, in_order, SEQUENTIAL)
    assert [each["name"] for each in summary["extractions"]] == list("01234")
    # Two votes on the claim.
    assert (judge.most_at_once, in_order.most_at_once) == (5, 2)


@pytest.mark.parametrize("options", [ExecutionOptions(), SEQUENTIAL])
@pytest.mark.parametrize(
    "reading", ["", "        first.desc = town.name\n", "        raise KeyError\n"]
)
async def test_an_extraction_that_fails_costs_the_result(tmp_path, reading, options):
    """Though its value is not read, or the script catches the error."""
    body = (
        "    try:\n        town = await evaluator.extract('?', Town)\n        first.desc = 'x'\n"
        f"{reading}    except Exception:\n        pass\n" + END
    )
    judge = RandomJudge(0, 0, fails_one_in=1)
    assert "outage" in await run(tmp_path, body, judge, options)


async def test_a_dependent_waits_and_is_not_asked_about_when_its_gate_fails(tmp_path):
    """The same leaf is named as in program order: the first that blocks, not the first that was there."""
    body = (
        "    await evaluator.verify('slow', first)\n    await evaluator.verify('quick', second)\n"
        "    await evaluator.verify('dependent', leaves[2], extra_prerequisites=[first, second])\n"
    )
    judge = WatchedJudge("slow", "quick")
    summary = await run(tmp_path, body + END, judge)
    assert "dependent" not in judge.claims
    node = summary["eval_breakdown"][0]["verification_tree"]["children"][2]
    assert node["evidence"]["reason"] == "not judged, because 'l0' failed"


async def test_what_is_asked_later_does_not_exist_yet(tmp_path):
    """A leaf verified later fails first, and blocks nothing that was asked before it."""
    body = (
        "    await evaluator.verify('early', first, extra_prerequisites=[second])\n"
        "    await evaluator.verify('late', second, majority_vote=False)\n"
    )
    assert statuses(await run(tmp_path, body + END, WatchedJudge("late")))[:2] == [
        "passed",
        "failed",
    ]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("evaluator.verify('c', first, num_trials=2)", ValueError),
        ("evaluator.verify('c', first, extra_prerequisites=[first])", ValueError),
        ("evaluator.verify()", TypeError),
        ("evaluator.verifier.verify('c', first, None, odd=1)", TypeError),
        ("evaluator.nothing.verify('c')", AttributeError),
    ],
)
async def test_arguments_are_checked_at_the_line_of_the_call(tmp_path, call, error):
    """The line is the author's, and so are the columns."""
    path = script(
        tmp_path,
        f"    await evaluator.verify('before', second)\n    await {call}\n{END}",
    )
    names = ("answer", "agent_name", "answer_name", "cache", "semaphore", "logger")
    with pytest.raises(error) as caught:
        await load_eval_script(path)(client=WatchedJudge(), **dict.fromkeys(names))
    frame = [
        each
        for each in traceback.extract_tb(caught.value.__traceback__)
        if each.filename == str(path)
    ][-1]
    assert (frame.lineno, frame.line) == (FIRST_LINE + 1, f"await {call}")
    assert asyncio.all_tasks() == {asyncio.current_task()}


READS = [
    "[first.status]",
    "[first.score, root.aggregated_score]",
    "[root.compute_score()]",
    "[sum(leaf.score for leaf in leaves)]",
    "[leaf.status for leaf in leaves]",
    "list(map(lambda leaf: leaf.status, leaves))",
    "[evaluator.score()]",
    "[str(first.model_dump())]",
    "[evaluator.__class__.score(evaluator)]",
    "[first.__dict__['score'], client.ledger.usage.judgments]",
]
HIDDEN_READS = [
    "[vars(first).get('status')]",
    "[getattr(first, 'status')]",
    "(lambda node: [node.__getattribute__('status')])(first)",
    "[peek(first)]",
    "[BaseModel.model_dump_json(Holder.model_construct(node=first))]",
    "to_jsonable_python([first], fallback=str)",
    "to_jsonable_python(root)",
    "[object.__getattribute__(first, '__dict__')['status']]",
    "[getattr(first, 'ver' + 'dict').status]",
    "[first == VerificationNode(id='x', desc='d'), getattr(client, 'led' + 'ger').usage.judgments]",
    "[getattr(first, 'sta' + 'tus')]",
    "[repr(first)]",
    "[str(dict(first))]",
    "[f'{root}']",
]


@pytest.mark.parametrize("read", READS)
async def test_results_are_there_when_they_are_read(tmp_path, read):
    """The syntax shows it, so that the script waits there and goes on."""
    body = f"{ALL}    evaluator.add_custom_info({{'read': {read}, 'attempts': len(ATTEMPTS)}})\n{END}"
    judge, in_order = WatchedJudge("l0"), WatchedJudge("l0")
    assert await run(tmp_path, body, judge) == await run(
        tmp_path, body, in_order, SEQUENTIAL
    )
    assert judge.most_at_once == 12


@pytest.mark.parametrize("read", HIDDEN_READS)
async def test_a_read_that_no_syntax_shows_waits_as_well(tmp_path, read):
    """In plain functions, in compiled code, by any name: the script runs once."""
    body = (
        f"{ALL}    try:\n        seen = {read}\n    except BaseException:\n        seen = ['junk']\n"
        f"    evaluator.add_custom_info({{'read': seen, 'attempts': len(ATTEMPTS)}})\n{END}"
    )
    judge, in_order = WatchedJudge("l0"), WatchedJudge("l0")
    assert await run(tmp_path, body, judge) == await run(
        tmp_path, body, in_order, SEQUENTIAL
    )
    assert (judge.most_at_once, judge.asked) == (12, in_order.asked)


async def test_a_client_that_is_not_ours_is_asked_in_program_order(tmp_path):
    """It may count what it is asked, by itself or by another object around it."""
    assert (
        statuses(await run(tmp_path, ALL + END, client := ClaimJudge()))
        == ["passed"] * 6
    )
    assert client.claims == [f"l{number}" for number in range(6) for _ in range(2)]


async def test_a_judgment_counts_once_in_a_run(tmp_path):
    """The result says of its making what program order would."""
    project = Project(tmp_path)
    project.add_answer()
    body = "leaf = evaluator.add_leaf('leaf', 'd')\nawait evaluator.verify('c', leaf)\nrepr(leaf)\n"
    project.add_script_body(body + "return evaluator.get_summary()\n")
    client = ClaimJudge()
    await evaluate(project, client)
    [path] = project.result_paths()
    assert (read_json(path)["judge_usage"]["judgments"], len(client.claims)) == (2, 2)


@pytest.mark.parametrize(
    "change",
    [
        "setattr(first, 'status', 'failed')",
        "first.add_node(VerificationNode(id='x', desc='d'))",
    ],
)
async def test_a_pending_verification_keeps_its_arguments(tmp_path, change):
    """Program order decides the leaf first."""
    body = f"    await evaluator.verify('c', first)\n    {change}\n    await evaluator.verify('d', second)\n"
    judge = WatchedJudge()
    expected = await run(tmp_path, body + END, WatchedJudge(), SEQUENTIAL)
    assert await run(tmp_path, body + END, judge) == expected


async def test_tasks_of_the_scripts_own_begin_when_all_before_is_decided(tmp_path):
    body = (
        "    await evaluator.verify('before', leaves[0])\n"
        "    await asyncio.gather(*(evaluator.verify('wrong', leaf) for leaf in leaves[1:3]))\n"
        "    await evaluator.verify('after', leaves[3], extra_prerequisites=[leaves[1]])\n"
    )
    judge = WatchedJudge("wrong")
    expected = await run(tmp_path, body + END, WatchedJudge("wrong"), SEQUENTIAL)
    assert await run(tmp_path, body + END, judge) == expected
    assert "after" not in judge.claims


async def test_a_task_that_verifies_has_nothing_deferred_beside_it(tmp_path):
    """It might see what program order has not decided yet."""
    body = (
        "    beside = getattr(__import__('asyncio'), 'create' + '_task')\n"
        "    async def other():\n        return await evaluator.verify('other', second)\n"
        "    task = beside(other())\n    await evaluator.verify('c', first)\n    await task\n"
    )
    judge = WatchedJudge()
    assert statuses(await run(tmp_path, body + END, judge))[:2] == ["passed", "passed"]
    assert sorted(judge.claims) == ["c", "c", "other", "other"]


async def test_nothing_is_deferred_while_a_task_of_the_scripts_own_verifies(tmp_path):
    """Later verifications start when the earlier ones end, as in sequential execution."""
    body = (
        "    task = asyncio.create_task(evaluator.verify('wrong', first))\n    await asyncio.sleep(0)\n"
        "    for leaf in leaves[2:5]:\n        await evaluator.verify('right', leaf)\n"
        "    await evaluator.verify('dependent', leaves[5], extra_prerequisites=[first])\n    await task\n"
    )
    judge = WatchedJudge("wrong")
    assert statuses(await run(tmp_path, body + END, judge))[5] == "skipped"


async def test_a_leaf_verified_again_is_waited_for(tmp_path):
    """The last verdict counts, and who depends on it sees the last one."""
    body = (
        "    await evaluator.verify('wrong', first)\n    await evaluator.verify('right', first)\n"
        "    await evaluator.verify('dependent', second, extra_prerequisites=[first])\n"
    )
    assert statuses(await run(tmp_path, body + END, WatchedJudge("wrong")))[:2] == [
        "passed",
        "passed",
    ]


async def test_sources_count_as_they_stand_when_the_script_asks(tmp_path):
    """A list that changes afterwards changes nothing."""
    body = "    urls = []\n    await evaluator.verify('c', first, urls)\n    urls.append('https://a.example')\n"
    assert statuses(await run(tmp_path, body + END, WatchedJudge()))[0] == "passed"


@pytest.mark.parametrize("end", [END, "    return {'final_score': 1.0}\n"])
async def test_a_judge_that_fails_costs_the_result(tmp_path, end):
    """Its own error comes out, its dependents are not asked about, and nothing goes on."""
    body = (
        "    await evaluator.verify('gate', first)\n"
        "    await evaluator.verify('dependent', second, extra_prerequisites=[first])\n"
    )
    judge = WatchedJudge(fails_on="gate")
    assert "outage" in await run(tmp_path, body + end, judge)
    assert set(judge.claims) == {"gate"}
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_script_that_raises_leaves_nothing_pending(tmp_path):
    judge, in_order = WatchedJudge(), WatchedJudge()
    body = ALL + "    {}['x']\n"
    assert await run(tmp_path, body, judge) == await run(
        tmp_path, body, in_order, SEQUENTIAL
    )
    assert judge.asked == in_order.asked
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_judge_that_fails_comes_before_what_a_script_raises_later(tmp_path):
    """As in program order, which never gets to the later line."""
    judge = WatchedJudge(fails_on="l0")
    assert (
        await run(tmp_path, ALL + "    {}['x']\n", judge)
        == "JudgeUnavailableError: outage"
    )


async def test_a_script_that_is_stopped_takes_its_work_along(tmp_path):
    """Also while it waits for what it has deferred, and though it looks at results on its way out."""

    @guarded
    class Silent(WatchedJudge):
        async def ask(self, request, subject, limit):  # noqa: ARG002
            self.at_once += 1
            try:
                await asyncio.Event().wait()
            finally:
                self.at_once -= 1

    body = f"{ALL}    try:\n        return evaluator.get_summary()\n    finally:\n        first.status\n"
    path, judge = script(tmp_path, body), Silent()
    function = load_script(path)
    names = ("answer", "agent_name", "answer_name", "cache", "semaphore", "logger")
    with pytest.raises(EvalScriptError, match="did not return within"):
        await run_script(
            lambda: function(client=judge, **dict.fromkeys(names)),
            path,
            0.05,
            logging.getLogger("x"),
        )
    assert judge.at_once == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_time_limit_begins_when_all_before_it_is_decided(tmp_path):
    """The speed of the judge on earlier claims does not count."""
    body = (
        "    await evaluator.verify('c', first)\n"
        "    limit = getattr(__import__('asyncio'), 'time' + 'out')(0.05)\n"
        "    await limit.__aenter__()\n    seen = first.status\n    await limit.__aexit__(None, None, None)\n"
        "    evaluator.add_custom_info({'seen': seen})\n"
    )
    judge = WatchedJudge()
    judge.turns = 20_000
    [info] = (await run(tmp_path, body + END, judge))["eval_breakdown"][0]["info"]
    assert info == {"custom": {"seen": "passed"}}


async def test_no_more_than_a_bounded_number_is_pending(tmp_path):
    """A script with hundreds of checks waits now and then."""
    body = (
        "    for number in range(300):\n"
        "        await evaluator.verify(str(number), evaluator.add_leaf(f'n{number}', 'd'))\n"
    )
    judge = WatchedJudge()
    judge.turns = 1000
    assert set(statuses(await run(tmp_path, body + END, judge))[6:]) == {"passed"}
    assert judge.most_at_once == 2 * MOST_PENDING


async def test_a_batch_waits_for_nothing(tmp_path):
    """They let any number be pending, as another round takes up to a day."""
    body = (
        "    for number in range(300):\n"
        "        await evaluator.verify(str(number), evaluator.add_leaf(f'n{number}', 'd'))\n"
    )
    judge = WatchedJudge()
    judge.turns = 1000
    await run(tmp_path, body + END, judge, ExecutionOptions(most_pending=1000))
    assert judge.most_at_once == 2 * 300


async def test_a_mapping_of_fields_from_before_stays_what_it_was(tmp_path):
    """In program order a verdict brings another one."""
    told = "    evaluator.add_custom_info({'was': before['status']})\n"
    body = f"    before = first.__dict__\n{ALL}{told}{END}"
    judge = WatchedJudge()
    expected = await run(tmp_path, body, WatchedJudge(), SEQUENTIAL)
    assert await run(tmp_path, body, judge) == expected


async def test_nodes_of_a_scripts_own_class_are_waited_for(tmp_path):
    """Only a plain leaf can be without its verdict until then."""
    body = (
        "    class Special(VerificationNode):\n        pass\n"
        "    special = Special(id='s', desc='d')\n    root.add_node(special)\n"
        "    await evaluator.verify('c', special)\n"
    )
    judge = WatchedJudge("c")
    assert statuses(await run(tmp_path, body + ALL + END, judge))[6] == "failed"


SHOWN = (
    "def shown(client):\n"
    "    return getattr(client, 'led' + 'ger').usage.judgments, getattr(client, 'fail' + 'ure')\n"
    "await evaluator.verify('c', evaluator.add_leaf('leaf', 'd'))\n"
    "evaluator.add_custom_info({'shown': [shown(client), client.ledger.usage.judgments]})\n"
    "return evaluator.get_summary()\n"
)


@pytest.mark.parametrize("order", [SEQUENTIAL, ExecutionOptions()])
async def test_a_runs_judge_shows_what_program_order_has_asked(tmp_path, order):
    """However a script comes to look."""
    project = Project(tmp_path)
    project.add_answer()
    project.add_script_body(SHOWN)
    [outcome] = await evaluate(project, ClaimJudge(), order=order)
    assert outcome.result.document["eval_breakdown"][0]["info"] == [
        {"custom": {"shown": [[2, None], 2]}}
    ]
