"""Turn the answer key into recorded judgments, after a change of what judges read.

    uv run python examples/record_judgments.py [FILE]

runs the nine evaluations through the real pipeline, answers every question from
``answer_key.json``, and writes ``judgments.jsonl``, or the file named. A question without an entry,
an entry that is not asked for, a quotation that is not found, and a score other than the one
derived by hand are errors. Beside that file, ``probe_judgments.jsonl`` has the replies to the
changed pages of ``mind2web2 probe``: a claim is supported if the key's quotation is still there.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from mind2web2.errors import JudgmentMissingError
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.judgment import Judgment, judgment_key
from mind2web2.judge.permit import AnswerLimits
from mind2web2.judge.protocol import QuestionContext
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.store import JudgmentStore
from mind2web2.judge.transfer import export_judgments
from mind2web2.llm_client.chat import ChatRequest
from mind2web2.llm_client.messages import checked_messages, text_of
from mind2web2.pages.library import PageLibrary
from mind2web2.results.answers import RunFolders, select_work
from mind2web2.results.result_file import ResultFile
from mind2web2.runs.answer import AnswerOutcome, RunParts
from mind2web2.runs.asked_judge import AskedJudge
from mind2web2.runs.concurrency import Concurrency
from mind2web2.runs.run import RunProgress, evaluate_work
from mind2web2.scripts.limits import DualSemaphore
from mind2web2.utils.path_config import PathConfig
from mind2web2_trust.probe.asking import SOURCE, ask_probes
from mind2web2_trust.probe.cases import CaseReader, passed_claims
from mind2web2_trust.probe.drafting import Draft, Drafting

AGENT = "example"
EXAMPLES = Path(__file__).parent
MODEL = "example-key"
# More than the example has.
_MOST_PROBES = 2_000

Question = tuple[str | None, ...]


class RecordingJudge(CachingJudge):
    """Answers by rules of its own and stores each reply as a judgment of the model ``example-key``.

    Args:
        written: when the rules were written. Judgments carry this time, so that recording again
            changes nothing else.
    """

    def __init__(self, store: JudgmentStore, endpoint: str, written: str) -> None:
        super().__init__(JudgeSpec(MODEL, provider="replay"), None, store)
        self._own_store = store
        self._endpoint = endpoint
        self._written = written
        self._sources: dict[str, tuple[str, str]] = {}

    def reply(self, request: ChatRequest, subject: QuestionContext, source: tuple[str, str]) -> Any:
        """Return the reply to a question of an answer, which JSON can hold.

        Args:
            source: the answer's task and name.
        """
        raise NotImplementedError

    async def judgment(
        self,
        request: ChatRequest,
        subject: QuestionContext,
        source: tuple[str, str],
        limits: AnswerLimits,  # noqa: ARG002
    ) -> Judgment:
        """Return the reply to a question as a judgment."""
        reply = self.reply(request, subject, source)
        key = judgment_key(replace(request, model=MODEL), subject.trial)
        # If several answers ask the same, the last by name is recorded, in any order.
        source = self._sources[key] = max(source, self._sources.get(key, source))
        judgment = Judgment(
            key=key,
            endpoint=self._endpoint,
            model=MODEL,
            outcome="reply",
            text=json.dumps(reply, ensure_ascii=False),
            created=self._written,
            task_id=source[0],
            answer_name=source[1],
            purpose=subject.purpose,
            node=subject.node,
            claim=subject.claim,
            page=subject.page,
            trial=subject.trial,
        )
        await self._own_store.put(judgment)
        return judgment


class KeyJudge(RecordingJudge):
    """Answers from the answer key."""

    def __init__(self, store: JudgmentStore, key: dict[str, Any]) -> None:
        super().__init__(store, "answer_key.json", key["written"])
        self._replies = _by_question(key)
        self.unused = set(self._replies)

    def reply(
        self,
        request: ChatRequest,  # noqa: ARG002
        subject: QuestionContext,
        source: tuple[str, str],
    ) -> Any:
        """Return the key's entry for a question."""
        question: Question = (*source, subject.purpose, subject.node, subject.page)
        if subject.purpose == "extract":
            question = question[:4]
        if question not in self._replies:
            raise JudgmentMissingError(f"no entry for {question}: {subject.claim}")
        self.unused.discard(question)
        return self._replies[question]


class ProbeJudge(KeyJudge):
    """Passes a claim on a changed page if that still has the passage that the key quotes."""

    def reply(self, request: ChatRequest, subject: QuestionContext, source: tuple[str, str]) -> Any:
        """Return the verdict on a changed page; the answer's name is the probe's."""
        task, answer, *leaf, _ = source[1].split("/")
        verdict = self._replies[task, f"{answer}.md", "verify", "/".join(leaf), subject.page]
        asked = "\n".join(text_of(checked_messages(request.messages)))
        page = re.search(r"<<page \w+>>\n(.*)\n<<end of page", asked, re.DOTALL)
        text = " ".join(page[1].split()) if page is not None else ""
        is_there = " ".join(verdict["quote"].split()) in text
        reasoning = (
            f"The passage of the answer key is {'still' if is_there else 'not'} on the page."
        )
        quote = verdict["quote"] if is_there else ""
        return {"reasoning": reasoning, "result": is_there, "quote": quote}


def _by_question(key: dict[str, Any]) -> dict[Question, Any]:
    extractions = {
        (entry["task"], entry["answer"], "extract", entry["name"]): entry["value"]
        for entry in key["extractions"]
    }
    verdicts = {
        (entry["task"], entry["answer"], "verify", entry["node"], entry["page"]): {
            name: entry[name] for name in ("reasoning", "result", "quote")
        }
        for entry in key["verdicts"]
    }
    return {**extractions, **verdicts}


async def record(
    judge: CachingJudge, paths: PathConfig, agent: str, results: Path
) -> list[AnswerOutcome]:
    """Evaluate an agent's answers into another folder, and return the outcomes."""
    run = RunParts(
        judge=judge,
        library=PageLibrary(),
        limits=DualSemaphore(asyncio.Semaphore(1), asyncio.Semaphore(1)),
        reuse=False,
        answer_timeout_s=None,
    )
    folders = RunFolders(agent, paths.cache_root, results)
    return await evaluate_work(
        select_work(paths, agent), folders, run, Concurrency(1, 1), RunProgress()
    )


async def record_probes(judge: CachingJudge, paths: PathConfig, results: Path) -> None:
    """Ask about the changed pages of all probes of the example's results."""
    claims = passed_claims(results, AGENT)
    Random(0).shuffle(claims.quoted)
    reader = CaseReader(paths.cache_root / AGENT, paths.answers_root / AGENT, PageLibrary())
    probes = await Drafting(AGENT, claims, reader, Draft(0)).first(_MOST_PROBES)
    asked = AskedJudge(judge, SOURCE, asyncio.Semaphore(_MOST_PROBES))
    await ask_probes(asked, probes, lambda: None)


def complaints(
    judge: KeyJudge, outcomes: list[AnswerOutcome], expected: dict[str, Any]
) -> list[str]:
    """Return what does not fit, one line each."""
    found = [f"unused entry: {question}" for question in sorted(judge.unused, key=str)]
    for outcome in outcomes:
        wanted = expected[outcome.task_id][outcome.answer_name]
        name = f"{outcome.task_id}/{outcome.answer_name}"
        if outcome.score is None:
            found.append(f"{name}: {outcome.reason}")
        elif abs(outcome.score - wanted) > 1e-9:
            found.append(f"{name}: score {outcome.score}, by hand {wanted}")
        found += [f"{name}: quotation not found: {text}" for text in misquoted(outcome.result)]
    return found


def misquoted(result: ResultFile | None) -> list[str]:
    """Return the quotations of a result that are not found verbatim."""
    leaves = () if result is None else result.leaves()
    groups = [votes for leaf in leaves if leaf.evidence for votes in leaf.evidence.vote_groups()]
    quotes = [vote.quote for votes in groups for vote in votes if vote.quote is not None]
    return [quote.text for quote in quotes if quote.match != "found"]


def main(output: Path = EXAMPLES / "judgments.jsonl") -> int:
    """Record the judgments into a file and return the exit status."""
    key = json.loads((EXAMPLES / "answer_key.json").read_text(encoding="utf-8"))
    expected = json.loads((EXAMPLES / "expected_scores.json").read_text(encoding="utf-8"))
    paths = PathConfig(EXAMPLES.parent)
    with (
        tempfile.TemporaryDirectory() as folder,
        JudgmentStore(None) as store,
        JudgmentStore(None) as probe_store,
    ):
        judge, results = KeyJudge(store, key), Path(folder)
        outcomes = asyncio.run(record(judge, paths, AGENT, results))
        found = complaints(judge, outcomes, expected)
        if not found:
            asyncio.run(record_probes(ProbeJudge(probe_store, key), paths, results))
            probes = output.with_name(f"probe_{output.name}")
            for kept, file in ((store, output), (probe_store, probes)):
                count = len(export_judgments(kept, file))
                sys.stdout.write(f"{count} judgments written to {file}\n")
            return 0
    sys.stderr.write("\n".join(found) + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
