"""The rewards of the page for trainers, called as each trainer documents it.

No score is never a 0.
"""

import asyncio
import shutil
from contextlib import closing
from functools import partial
from types import SimpleNamespace

import pytest
from documents import trainer_stubs
from documents.blocks import blocks_of
from projects import REPOSITORY
from scoring.test_server import served
from servers.judge_server import JudgeServer, status
from servers.recorded_replies import RecordedReplies

from mind2web2 import Judge, Scorer

# A line that only the block of this trainer has.
MARKS = {
    "trl": "def rubric_reward(",
    "verl": "def compute_score(",
    "slime": "def score_sample(",
    "verifiers": "def rubric_tree(",
    "nemo_gym": "class RubricServer(",
    "openenv": "class RubricEnvironment(",
}
TASK = "museum_saturday"
RIGHT = (REPOSITORY / f"answers/example/{TASK}/answer_2.md").read_text(encoding="utf-8")
# The judge refuses the key where it is shown this answer.
UNJUDGED = f"{RIGHT}\n\nMore about the museum."


def _refused(body):
    return (
        status(401, "Incorrect API key provided") if "More about the museum." in str(body) else None
    )


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """Stand in a folder with scripts and pages, beside a judge that knows the key."""
    shutil.copytree(REPOSITORY / "cache/example", tmp_path / "cache/my_agent")
    shutil.copytree(REPOSITORY / "eval_scripts", tmp_path / "eval_scripts")
    monkeypatch.chdir(tmp_path)
    prices = "[prices.own]\ninput = 1\noutput = 2\n"
    (tmp_path / "mind2web2.toml").write_text(prices, encoding="utf-8")
    with JudgeServer(RecordedReplies(), faults=_refused) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "dummy")
        yield server


@pytest.fixture
def names_of(project):
    """Return a function that runs a trainer's block, with a judge on a server of its own."""
    own = f'Judge(model="own", base_url="{project.base_url}")'
    return partial(_names_of, own)


def _names_of(judge, trainer):
    blocks = blocks_of(REPOSITORY / "docs/rewards.md")
    [text] = [block.text for block in blocks if MARKS[trainer] in block.text]
    names = {"__name__": trainer}
    text = text.replace('Judge(model="o4-mini")', judge)
    exec(compile(text, trainer, "exec"), names)
    return names


def test_trl_gets_none_for_a_sample_without_a_score(names_of):
    """`reward(prompts=, completions=, completion_ids=, trainer_state=, **columns)` gives a list."""
    names = names_of("trl")
    with names["scorer"]:
        for answers, expected in [([RIGHT, ""], [1.0, 0.0]), ([UNJUDGED], [None])]:
            rewards = names["rubric_reward"](
                prompts=["q"] * len(answers),
                completions=[[{"role": "assistant", "content": answer}] for answer in answers],
                completion_ids=[[1]] * len(answers),
                trainer_state=None,
                task=[TASK] * len(answers),
            )
            assert asyncio.run(rewards) == expected


def test_verl_gets_a_mark_beside_the_score(names_of):
    """`compute_score(data_source, solution_str, ground_truth, extra_info)`."""
    names = names_of("verl")
    with closing(names["_scorer"]):
        for answer, expected in [
            (RIGHT, (1.0, 0.0)),
            ("", (0.0, 0.0)),
            (UNJUDGED, (0.0, 1.0)),
        ]:
            outcome = asyncio.run(
                names["compute_score"]("tasks", answer, None, extra_info={"task": TASK})
            )
            assert (outcome["score"], outcome["no_score"]) == expected


def test_slime_gets_a_sample_to_remove(names_of):
    """`fn(args, sample)`, and a list of samples for a group."""
    names = names_of("slime")
    samples = [
        SimpleNamespace(response=answer, metadata={"task": TASK}, label=None, remove_sample=False)
        for answer in (RIGHT, "", UNJUDGED)
    ]
    with closing(names["_scorer"]):
        assert asyncio.run(names["score_sample"](None, samples[:2])) == [1.0, 0.0]
        assert asyncio.run(names["score_sample"](None, samples[2])) == 0.0
    assert [sample.remove_sample for sample in samples] == [False, False, True]


async def test_verifiers_gets_an_error_instead_of_a_score(monkeypatch, names_of, project):
    """`fn(task, trace)`, asked over HTTP."""
    names = names_of("verifiers")
    judge = Judge(model="own", base_url=project.base_url)
    with served(Scorer(judge=judge, pages="cache/my_agent")) as client:
        monkeypatch.setitem(names, "SERVER", str(client.base_url).rstrip("/"))
        task = SimpleNamespace(id=TASK)
        reward = names["rubric_tree"]
        assert await reward(task, SimpleNamespace(last_reply=RIGHT)) == 1.0
        with pytest.raises(names["NoRubricScore"], match="key"):
            await reward(task, SimpleNamespace(last_reply=UNJUDGED))


def _rollout(answer):
    """Return what NeMo Gym posts to ``/verify``: a response of OpenAI's Responses API."""
    text = {"type": "output_text", "text": answer, "annotations": []}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [text],
    }
    response = {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "model": "policy",
        "output": [message],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }
    return {"responses_create_params": {"input": "q"}, "response": response, "task": TASK}


async def test_nemo_gym_gets_a_masked_sample(monkeypatch, names_of, project):
    trainer_stubs.install(monkeypatch)
    names = names_of("nemo_gym")
    judge = Judge(model="own", base_url=project.base_url)
    with served(Scorer(judge=judge, pages="cache/my_agent")) as client:
        monkeypatch.setitem(names, "SERVER", str(client.base_url).rstrip("/"))
        replies = [
            await names["RubricServer"]().verify(
                names["RubricRequest"].model_validate(_rollout(answer))
            )
            for answer in (RIGHT, "", UNJUDGED)
        ]
    assert [(reply.reward, reply.mask_sample) for reply in replies] == [
        (1.0, False),
        (0.0, False),
        (0.0, True),
    ]
    assert replies[2].failure_kind == "judge_failed"
    assert "key" in replies[2].failure_reason


async def test_openenv_gets_no_reward_and_a_masked_sample(monkeypatch, names_of, project):
    trainer_stubs.install(monkeypatch)
    names = names_of("openenv")
    environment, action, _, _ = names["app"]
    judge = Judge(model="own", base_url=project.base_url)
    with served(Scorer(judge=judge, pages="cache/my_agent")) as client:
        monkeypatch.setitem(names, "SERVER", str(client.base_url).rstrip("/"))
        replies = []
        for answer in (RIGHT, "", UNJUDGED):
            episode = environment()
            assert episode.reset(task=TASK).wire()["done"] is False
            replies.append((await episode.step_async(action(text=answer))).wire())
    assert [(reply["reward"], reply["done"]) for reply in replies] == [
        (1.0, True),
        (0.0, True),
        (None, True),
    ]
    assert [reply["observation"]["mask_sample"] for reply in replies] == [False, False, True]
    assert "key" in replies[2]["observation"]["failure_reason"]
