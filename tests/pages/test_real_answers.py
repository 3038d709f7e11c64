"""Real agents' answers pass URL handling, prompts and a whole evaluation."""

import re
from collections import Counter
from pathlib import Path

import pytest
from evaluations import started, tree_nodes
from scripted_judge import Question, ScriptedJudge

from mind2web2 import CacheFileSys
from mind2web2.urls.markdown import URLs, regex_find_urls
from mind2web2.urls.parts import lookup_key
from mind2web2.verification.messages import extraction_messages, verification_messages

FOLDER = Path(__file__).parents[3] / "shared/data/answers"
ANSWERS = sorted(FOLDER.glob("*/answer_*.md"))
# Where the folder is absent there are no cases, rather than skipped ones.
__test__ = bool(ANSWERS)

CITATION = re.compile(r"https?://[^\s)\]>|]+")


@pytest.fixture(params=ANSWERS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def answer(request):
    """Return the text of each answer in turn."""
    return request.param.read_text(encoding="utf-8")


def test_every_cited_url_is_found(answer):
    """A bare host with a path counts as well, and gets the scheme that it lacks."""
    found = set(regex_find_urls(answer))
    cited = set(CITATION.findall(answer))
    assert cited
    assert cited <= found
    for url in found - cited:
        assert f" {url.removeprefix('https://')} " in answer
    assert None not in map(lookup_key, found)


def test_every_cited_page_is_found_again(answer, tmp_path):
    """A page stored under one spelling is found under the spellings that agents use."""
    cache = CacheFileSys(tmp_path)
    urls = list({lookup_key(url): url for url in regex_find_urls(answer)}.values())
    for url in urls:
        cache.put_web(url, f"page of {url}", None)
    for url in urls:
        for spelling in (
            url,
            f"{url}#top",
            url.removeprefix("https://"),
            url.replace("_", "\\_"),
        ):
            assert cache.get_web(spelling) == (f"page of {url}", None)
    assert cache.summary()["total_urls"] == len(urls)


@pytest.mark.parametrize("ask", [verification_messages, extraction_messages])
def test_the_judge_is_shown_the_whole_answer(ask, answer):
    """Unaltered inside its block, also where the claim quotes it."""
    messages = ask("the task", answer, None, answer, "None")
    blocks = Question("m", messages, None).blocks
    assert blocks["answer"] == answer
    assert blocks["claim" if ask is verification_messages else "what to extract"] == answer


async def test_an_evaluation_runs_on_the_answer(answer, tmp_path):
    """A whole evaluation accounts for every leaf."""
    cache = CacheFileSys(tmp_path)
    urls = regex_find_urls(answer)
    cache.put_web(urls[0], answer, None)
    stored = [cache.has_web(url) for url in urls]

    def reply(question):
        return URLs(urls=urls) if question.template is URLs else "page" in question.blocks

    evaluator = started(ScriptedJudge(reply), cache, answer=answer)
    cited = (await evaluator.extract("All URLs", URLs)).urls
    leaves = [evaluator.add_leaf("cited", url) for url in cited]
    batch = [(f"{url} says so", url, leaf, None) for url, leaf in zip(cited, leaves, strict=True)]
    assert await evaluator.batch_verify(batch) == stored
    summary = evaluator.get_summary()
    assert summary["final_score"] == pytest.approx(sum(stored) / len(cited))
    nodes = [node for node in tree_nodes(summary).values() if node["id"] != "root"]
    decided_by = Counter(node["evidence"]["decided_by"] for node in nodes)
    assert decided_by == {"judge": sum(stored), "page": len(urls) - sum(stored)}
