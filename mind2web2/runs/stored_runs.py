"""Scripts that run again from the stored judgments of several results.

Where a judgment is missing, the judge is asked, or one verdict stands in for each.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, Self

from mind2web2.errors import JudgmentMissingError, Mind2Web2Error, UsageError
from mind2web2.judge.budget import Lease, shared_lease
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.judgment import Judgment, judgment_key
from mind2web2.judge.other_agents import SharingJudgmentStore
from mind2web2.judge.permit import AnswerLimits
from mind2web2.judge.protocol import AskedQuestion, QuestionContext
from mind2web2.judge.record import REPLAY, JudgeRecord
from mind2web2.judge.spec import replaying
from mind2web2.judge.store import STORE_NAME, JudgmentStore
from mind2web2.judge.tokens import REPLY_TOKENS, request_tokens
from mind2web2.judge.transfer import EXPORT_SUFFIX, merged_store
from mind2web2.judge.usage import RunUsage
from mind2web2.llm_client.chat import ChatReply, ChatRequest, Usage
from mind2web2.llm_client.prices import price_usd
from mind2web2.pages.cache import CacheFileSys
from mind2web2.results.answers import AnswerFile
from mind2web2.results.provenance import Provenance
from mind2web2.results.result_file import ResultFile
from mind2web2.runs.again import ScriptRuns
from mind2web2.runs.named_judge import judge_spec
from mind2web2.runs.recorded_settings import recorded_judge
from mind2web2.runs.session import budget_of, judge_client
from mind2web2.runs.settings import RunSettings
from mind2web2.verification.run_questions import BinaryEvalResult

# A missing judgment is asked for, or its claim passes or fails.
Missing = Literal["asked", "passes", "fails"]


class StandInJudge(CachingJudge):
    """Replays stored judgments, and gives one verdict on each claim without any.

    Another judge's values stand in for a missing extraction, so that the claims that rest on it
    are counted. Without them the script ends there.

    Args:
        other: the judge whose extractions stand in; ``None`` for empty ones.

    Attributes:
        missing: the judgments that are not stored: their keys, each with the dollars that it would
            cost, or ``None`` for an unknown price.
        is_guess: another judge's values stand in.
    """

    def __init__(
        self, judge: JudgeRecord, store: JudgmentStore, other: JudgeRecord | None, *, passes: bool
    ) -> None:
        super().__init__(replaying(judge, judge.votes), None, store)
        self.missing: dict[str, float | None] = {}
        self.is_guess = False
        self._other = other and CachingJudge(replaying(other, other.votes), None, store)
        verdict = BinaryEvalResult(reasoning="not judged", result=passes)
        self._replies: dict[object, str] = {BinaryEvalResult: verdict.model_dump_json()}

    async def judgment(
        self,
        request: ChatRequest,
        subject: QuestionContext,
        source: tuple[str, str],
        limits: AnswerLimits,
    ) -> Judgment:
        """Return the stored judgment on a request, or the verdict in its place."""
        try:
            return await super().judgment(request, subject, source, limits)
        except JudgmentMissingError:
            keyed = self.keyed(request)
            key = judgment_key(keyed, subject.trial)
            usage = Usage(request_tokens(keyed), output_tokens=REPLY_TOKENS)
            self.missing[key] = price_usd(usage, self.settings.model)
        if self._other and request.template is not BinaryEvalResult:
            self.is_guess = True
            return await self._other.judgment(request, subject, source, limits)
        reply = self._replies.get(request.template, "{}")
        named = replace(keyed, name=key)
        asked = AskedQuestion(named, subject, source, self.endpoint, time.time_ns())
        return self._as_judgment(asked, ChatReply(reply), is_too_long=False)


@dataclass(frozen=True)
class RunAgain:
    """A script that ran again.

    Args:
        result: ``None`` if a missing judgment has ended the script.
        missing: the judgments that are not stored, as ``StandInJudge`` has them.
        is_guess: it rests on another judge's values, and its score says nothing.
    """

    result: ResultFile | None
    missing: Mapping[str, float | None] = field(default_factory=dict)
    is_guess: bool = False


class StoredRuns(ScriptRuns):
    """Runs scripts on answers again, from the judgments of one store."""

    def __init__(
        self,
        folder: Path,
        store: JudgmentStore,
        judges: Mapping[JudgeRecord, CachingJudge],
        requests: int,
    ) -> None:
        super().__init__(folder, requests)
        self._store = store
        self._judges = judges

    @classmethod
    @contextmanager
    def opened(
        cls,
        stores: Collection[Path],
        asking: RunSettings | None = None,
        kept_in: Path = Path(),
        judges: Collection[JudgeRecord] = (),
    ) -> Iterator[Self]:
        """Yield runs from the judgments of several files.

        Args:
            asking: the settings by which missing ones are asked for, ``None`` if none are.
            kept_in: the folder of the agent whose store keeps them.
            judges: may be asked, but for a replay; they share ``--max_cost``.

        Raises:
            UsageError: a judge cannot be asked, or its price is not known.
        """
        with ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="mind2web2-again-")))
            if asking is None:
                yield cls(folder, stack.enter_context(merged_store(stores, folder)), {}, 1)
                return
            own = kept_in / STORE_NAME
            others = [
                _as_store(path, folder / path.stem)
                for path in stores
                if path != own and path.is_file()
            ]
            store = stack.enter_context(SharingJudgmentStore(own, others))
            lease = shared_lease(asking.max_cost or 0.0)
            asked = {
                record: _asked_judge(record, asking, store, lease)
                for record in judges
                if record.provider != REPLAY
            }
            yield cls(folder, store, asked, asking.max_llm_requests)

    @property
    def usage(self) -> RunUsage:
        """Return the usage of all judges that were asked."""
        usage = RunUsage()
        for judge in self._judges.values():
            usage.add(judge.usage)
        return usage

    async def run_again(
        self,
        agent_name: str,
        task_id: str,
        answer: AnswerFile,
        script: Path,
        pages: CacheFileSys,
        judge: JudgeRecord,
        other: JudgeRecord | None,
        made_from: Provenance | None,
        missing: Missing,
    ) -> RunAgain:
        """Return the result of a script on an answer.

        Args:
            pages: as ``pages`` returns them.
            other: the judge whose extractions stand in for missing ones; ``None`` for empty ones.
            made_from: the clock and the network of the script are those of this result.
            missing: what is done without a judgment on a claim.

        Raises:
            Mind2Web2Error: there is no result, for another reason than a missing judgment.
        """
        if missing == "asked":
            asked = self._judges.get(judge)
            if asked is None:
                raise UsageError(
                    "the result was replayed from stored judgments, and names no server to ask; "
                    "evaluate with a judge first, or name another one's provider (--with "
                    "llm_provider=openai)"
                )
            return RunAgain(
                await self.result(agent_name, task_id, answer, script, pages, asked, made_from)
            )
        stand_in = StandInJudge(judge, self._store, other, passes=missing == "passes")
        try:
            result = await self.result(
                agent_name, task_id, answer, script, pages, stand_in, made_from
            )
        except Mind2Web2Error:
            if not stand_in.missing:
                raise
            return RunAgain(None, stand_in.missing)
        return RunAgain(result, stand_in.missing, stand_in.is_guess)


def _as_store(path: Path, folder: Path) -> Path:
    """Return a store of judgments, made in a folder of ours from an exported file."""
    if path.suffix != EXPORT_SUFFIX:
        return path
    with merged_store([path], folder):
        return folder / STORE_NAME


def _asked_judge(
    record: JudgeRecord, settings: RunSettings, store: JudgmentStore, lease: Lease
) -> CachingJudge:
    spec = judge_spec(recorded_judge(record)).with_prices(settings.prices)
    budget = budget_of(settings, spec, lease)
    return CachingJudge(spec, judge_client(spec), store, budget=budget)
