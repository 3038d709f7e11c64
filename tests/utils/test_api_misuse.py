"""Names and calls that the toolkit does not have.

There is no result, whatever the script makes of the exception.
"""

import pytest
from projects import ClaimJudge, Project, evaluate

# Line 24 of a script, and the reason that its answer gets.
MISUSES = {
    "evaluator.scroe()": "uses Evaluator.scroe in line 24, which the toolkit does not have: "
    "did you mean 'score'?",
    "evaluator.verifier.model": "uses Verifier.model in line 24",
    "evaluator.extractor.extract_from_page('x')": "uses Extractor.extract_from_page in line 24",
    "leaf.scores": "uses VerificationNode.scores in line 24",
    "leaf.weight = 2": "uses VerificationNode.weight in line 24",
    "setattr(leaf, 'weight', 2)": "uses VerificationNode.weight in line 24",
    "leaf.score += leaf.weight": "uses VerificationNode.weight in line 24",
    "cache.get_page('x')": "uses CacheFileSys.get_page in line 24",
    "client.complete()": "in line 24, which the toolkit does not have",
    "BinaryEvalResult(reasoning='', result=True).verdict": "uses BinaryEvalResult.verdict in line "
    "24",
    "semaphore.pages": "uses DualSemaphore.pages in line 24",
    "AggregationStrategy.SEQUENTAIL": "uses AggregationStrategy.SEQUENTAIL in line 24",
    "tool_googlemap.GoogleMapsTool().get_country('x')": "uses GoogleMapsTool.get_country in line "
    "24",
    "tool_googlemap.MapsTool()": "uses mind2web2.api_tools.tool_googlemap.MapsTool in line 24",
    "from mind2web2.utils.misc import nonsense": "uses mind2web2.utils.misc.nonsense in line 24",
    "from mind2web2 import Nonsense": "imports mind2web2.Nonsense in line 24",
    "from mind2web2.nonsense import x": "imports mind2web2.nonsense in line 24",
    "getattr(evaluator, 'scroe', None) or evaluator.scroe": "uses Evaluator.scroe in line 24",
    "await evaluator.verify('c', leaf, soucres='x')": "calls Evaluator.verify in line 24 with "
    "arguments "
    "that it does not take: unknown keyword 'soucres': did you mean 'sources'?",
    "await asyncio.gather(evaluator.verify('c', leaf, soucres='x'))": "unknown keyword 'soucres'",
    "await evaluator.verify('c', leaf, 'x', [leaf])": "calls Evaluator.verify in line 24",
    "await evaluator.verifier.simple_verify('c', leaf, num_trails=1)": "calls Verifier.verify in "
    "line 24 with arguments that it does not take: unknown keyword 'num_trails': did you mean "
    "'num_trials'?",
    "await evaluator.batch_verify([('c', None, leaf, None)], "
    "majority=True)": "did you mean 'majority_vote'?",
    "await evaluator.extract('p', BinaryEvalResult, src='x')": "calls Evaluator.extract in line 24",
    "evaluator.add_custom_node(True, 'a')": "missing a required argument: 'desc'",
    "leaf.compute_score(write=True)": "calls VerificationNode.compute_score in line 24",
    "cache.get_web('x', screenshot=True)": "unknown keyword 'screenshot': did you mean "
    "'get_screenshot'?",
    "await client.async_response(messages=[])": "missing a required",
    "create_evaluator(client=client)": "calls create_evaluator in line 24",
    "VerificationNode(id='a', desc='d', critcal=True)": "calls VerificationNode.__init__ in line "
    "24 with "
    "arguments that it does not take: unknown keyword 'critcal': did you mean 'critical'?",
    "await client.chat.completions.create(model='m', messages=[])": (
        "AnswerClient.chat.completions in line 24"
    ),
    "await evaluator.batch_verify([('c', None, leaf)])": "gives batch_verify an item of 3 parts: "
    "expected "
    "(claim, sources, node, additional_instruction)",
    "await evaluator.batch_verify(['c'])": "gives batch_verify an item of a str",
    "evaluator.verify('c', leaf)": "calls Evaluator.verify in line 24 without await: write await "
    "before it",
    "held = evaluator.extract('c', BinaryEvalResult)": "calls Evaluator.extract in line 24 "
    "without await",
    "assert evaluator.verifier.verify('c', leaf, None)": "calls Verifier.verify in line 24 "
    "without await",
    "await fresh(answer=answer).verify('c', None)": "needs a judge: call initialize(..., "
    "client=client)",
    "await fresh(client=client).verify('c', None)": "needs the answer's text: call "
    "initialize(..., answer=answer)",
    "await fresh(client=client).extract('c', BinaryEvalResult)": "needs the answer's text",
    "await fresh(client=client, answer=answer).verify('c', None, "
    "'https://lake.example')": "needs cited pages: call initialize(..., global_cache=cache)",
    "len([evaluator.verify('c', leaf)])": "calls Evaluator.verify in line 24 without await",
    "CacheFileSys()": "calls CacheFileSys.__init__ in line 24",
}
# These cost no result: probes, mistakes in a script's own things, exceptions of the interface.
OWN_MATTERS = (
    "hasattr(evaluator, 'scroe')",
    "getattr(leaf, 'weight', 1)",
    "evaluator.my_own = 1; evaluator.my_own",
    "Own().nothing",
    "own(1, 2)",
    "None.verify",
    "{}.verify",
    "answer.score",
    "logger.nothing",
    "evaluator.verifier.logger.nothing",
    "int('x')",
    "leaf.status = 'unknown'",
    "await evaluator.verify('c', leaf, num_trials=2)",
    "evaluator.add_leaf('x', 'x', score=3)",
    "cache.get_web('https://lake.example/gone')",
    "held = evaluator.verify('c', leaf); await held",
    "calls = [evaluator.verify('c', None)]; await calls[0]",
    "await (lambda: evaluator.verify('c', None))()",
    "await asyncio.create_task(evaluator.verify('c', None))",
    "await asyncio.gather(*[evaluator.verify('c', leaf) for _ in range(2)])",
    "evaluator.verify('c', leaf).close()",
    "await fresh(client=client, global_cache=cache).verify('c', None, 'https://lake.example/gone')",
    "await fresh(client=client, answer='').verify('c', None)",
    "cache.put_web('https://lake.example/there', 'The lake.', None); "
    "await fresh(client=client, global_cache=cache).verify('c', None, "
    "'https://lake.example/there')",
    "asyncio.create_task(evaluator.verify('c', None))",
    "tool_googlemap = Own(); tool_googlemap.nothing",
    "json.dumps(leaf, default=lambda node: node.nothing_of_ours) if False else len(3)",
)
SCRIPT = """\
import asyncio, json
from mind2web2 import CacheFileSys, Evaluator, VerificationNode, create_evaluator
from mind2web2.api_tools import tool_googlemap
from mind2web2.verification.extractor import BinaryEvalResult
from mind2web2.rubric.node import AggregationStrategy
try:
    from mind2web2.future_things import Nothing
except ImportError:
    Nothing = None
class Own:
    pass
def own():
    pass
def fresh(**given):
    evaluator = Evaluator()
    evaluator.initialize("lake", **given)
    return evaluator
async def evaluate_answer(client, answer, agent_name, answer_name, cache, semaphore, logger, model="m"):
    evaluator = Evaluator()
    evaluator.initialize("lake", client=client, answer=answer, global_cache=cache, logger=logger)
    leaf = evaluator.add_leaf("leaf", "leaf")
    await evaluator.verify("it is deep", evaluator.add_leaf("first", "first"))
    try:
        %s
    except Exception:
        pass
    await evaluator.verify("it is cold", leaf)
    return evaluator.get_summary()
"""


def scripts(folder, lines):
    """Return a project with one task for each line, by its number."""
    project = Project(folder)
    for number, line in enumerate(lines):
        project.add_answer("answer_1", task=f"task_{number:03}")
        project.add_raw_script(SCRIPT % line, task=f"task_{number:03}")
    return project


@pytest.mark.parametrize("ahead", ["values", None])
async def test_what_the_toolkit_lacks_is_no_verdict(tmp_path, ahead):
    project = scripts(tmp_path, MISUSES)
    outcomes = await evaluate(
        project,
        ClaimJudge(),
        ahead=ahead,
    )
    for outcome, (line, reason) in zip(outcomes, MISUSES.items(), strict=True):
        assert outcome.result is None, line
        assert (
            outcome.reason.startswith(f"script {outcome.task_id}.py ") and reason in outcome.reason
        ), line


async def test_a_scripts_own_mistakes_stay_its_own(tmp_path):
    project = scripts(tmp_path, OWN_MATTERS)
    outcomes = await evaluate(project, ClaimJudge())
    assert {
        line: outcome.reason for line, outcome in zip(OWN_MATTERS, outcomes, strict=True)
    } == dict.fromkeys(OWN_MATTERS)
    assert {outcome.score for outcome in outcomes} == {1.0}


async def test_a_missing_import_is_named_with_its_line(tmp_path):
    project = Project(tmp_path)
    project.add_answer()
    project.add_raw_script("import asyncio\nfrom mind2web2.evaluator import Evaluater\n")
    (outcome,) = await evaluate(project, ClaimJudge())
    assert outcome.reason == (
        "script lake.py uses mind2web2.evaluator.Evaluater in line 2, which the toolkit does not "
        "have: did you mean 'Evaluator'?"
    )


async def test_arguments_without_effect_are_recorded(tmp_path):
    """Unknown keywords of ``add_*`` and ``initialize``: the result has their names."""
    project = scripts(tmp_path, ["evaluator.add_parallel('a', 'a', critcal=True, weight=2)"])
    (outcome,) = await evaluate(project, ClaimJudge())
    assert outcome.result.document["ignored_arguments"] == ["critcal", "weight"]


HELPER = """\
def weight_of(node):
    return node.weight if hasattr(node, "weight") else 1
def total(node):
    return node.totl
class Around:
    def __init__(self, node):
        self.node = node
    def __getattr__(self, name):
        return getattr(self.node, name)
class Asking(Around):
    def __getattr__(self, name):
        return getattr(self.node, name) if hasattr(self.node, name) else 0
class Filling(Around):
    def __getattr__(self, name):
        return getattr(self.node, name, 0)
"""
HELPED = (
    "import sys, pathlib; sys.path.insert(0, str(pathlib.Path(__file__).parent)); import helper; "
)


@pytest.mark.parametrize(
    "call",
    [
        "weight_of(leaf)",
        "weight_of(helper.Around(leaf))",
        "Asking(leaf).weight",
        "Filling(leaf).weight",
    ],
)
async def test_a_helper_may_ask_for_a_name(tmp_path, call):
    project = scripts(tmp_path, [f"{HELPED}helper.{call}"])
    (tmp_path / "eval_scripts" / "example" / "helper.py").write_text(HELPER)
    (outcome,) = await evaluate(project, ClaimJudge())
    assert (outcome.score, outcome.reason) == (1.0, None)


@pytest.mark.parametrize(
    ("call", "place"),
    [
        ("total(leaf)", "helper.py uses VerificationNode.totl in line 4"),
        ("Around(leaf).totl", "task_000.py uses VerificationNode.totl in line 24"),
    ],
)
async def test_a_helper_may_not_use_a_missing_name(tmp_path, call, place):
    project = scripts(tmp_path, [f"{HELPED}helper.{call}"])
    (tmp_path / "eval_scripts" / "example" / "helper.py").write_text(HELPER)
    (outcome,) = await evaluate(project, ClaimJudge())
    assert outcome.reason == f"script {place}, which the toolkit does not have"
