"""Scripts that run again from the stored judgments of several results.

Where a judgment is missing, the judge is asked, or one verdict stands in for each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, Self

from mind2web2.errors import JudgmentMissingError, Mind2Web2Error
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.judgment import Judgment, judgment_key
from mind2web2.judge.other_agents import SharingJudgmentStore
from mind2web2.judge.permit import AnswerLimits
from mind2web2.judge.protocol import QuestionContext
from mind2web2.judge.record import REPLAY, JudgeRecord
from mind2web2.judge.spec import replaying
from mind2web2.judge.store import STORE_NAME, JudgmentStore
from mind2web2.judge.transfer import merged_store
from mind2web2.llm_client.chat import ChatRequest
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

    A missing extraction still ends the script: nothing can stand in for its values.

    Attributes:
        missing: the keys of the judgments that are not stored.
    """

    def __init__(self, judge: JudgeRecord, store: JudgmentStore, *, passes: bool) -> None:
        super().__init__(replaying(judge, judge.votes), None, store)
        self.missing: set[str] = set()
        self._reply = BinaryEvalResult(reasoning="not judged", result=passes).model_dump_json()

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
            key = judgment_key(self.keyed(request), subject.trial)
            self.missing.add(key)
            if request.template is not BinaryEvalResult:
                raise
        return Judgment(
            key=key,
            endpoint=REPLAY,
            model=self.settings.model,
            outcome="reply",
            text=self._reply,
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
            task_id=source[0],
            answer_name=source[1],
            purpose=subject.purpose,
            node=subject.node,
            claim=subject.claim,
            page=subject.page,
            trial=subject.trial,
        )


@dataclass(frozen=True)
class RunAgain:
    """A script that ran again.

    Args:
        result: ``None`` if a missing judgment has ended the script.
        missing: the keys of the judgments that are not stored.
    """

    result: ResultFile | None
    missing: frozenset[str] = frozenset()


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
            judges: may be asked; each has an equal part of ``--max_cost``.

        Raises:
            UsageError: a judge cannot be asked, or its price is not known.
        """
        with ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="mind2web2-again-")))
            if asking is None:
                yield cls(folder, stack.enter_context(merged_store(stores, folder)), {}, 1)
                return
            own = kept_in / STORE_NAME
            others = [path for path in stores if path != own and path.is_file()]
            store = stack.enter_context(SharingJudgmentStore(own, others))
            if asking.max_cost is not None:
                asking = replace(asking, max_cost=asking.max_cost / len(judges))
            asked = {record: _asked_judge(record, asking, store) for record in judges}
            yield cls(folder, store, asked, asking.max_llm_requests)

    async def run_again(
        self,
        agent_name: str,
        task_id: str,
        answer: AnswerFile,
        script: Path,
        pages: CacheFileSys,
        judge: JudgeRecord,
        made_from: Provenance,
        missing: Missing,
    ) -> RunAgain:
        """Return the result of a script on an answer.

        Args:
            pages: as ``pages`` returns them.
            made_from: the clock and the network of the script are those of this result.
            missing: what is done without a judgment; nothing stands in for an extraction.

        Raises:
            Mind2Web2Error: there is no result, for another reason than a missing judgment.
        """
        if missing == "asked":
            asked = self._judges[judge]
            return RunAgain(
                await self.result(agent_name, task_id, answer, script, pages, asked, made_from)
            )
        stand_in = StandInJudge(judge, self._store, passes=missing == "passes")
        try:
            result = await self.result(
                agent_name, task_id, answer, script, pages, stand_in, made_from
            )
        except Mind2Web2Error:
            if not stand_in.missing:
                raise
            return RunAgain(None, frozenset(stand_in.missing))
        return RunAgain(result, frozenset(stand_in.missing))


def _asked_judge(record: JudgeRecord, settings: RunSettings, store: JudgmentStore) -> CachingJudge:
    spec = judge_spec(recorded_judge(record)).with_prices(settings.prices)
    return CachingJudge(spec, judge_client(spec), store, budget=budget_of(settings, spec))
