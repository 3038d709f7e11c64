"""Two judges as one: the strong judge, which has a cheap one vote on claims before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from mind2web2.errors import UsageError
from mind2web2.judge.answer_judge import AnswerJudge
from mind2web2.judge.caching import CachingJudge
from mind2web2.judge.composed import ComposedSpec, JudgeMaker
from mind2web2.judge.judgment import JudgeIdentity
from mind2web2.judge.protocol import Judge
from mind2web2.judge.spec import REPLAY, JudgeRecord, JudgeSpec, server_named
from mind2web2.judge.voting import Ballot, Shown, Voted, Voter
from mind2web2.llm_client.chat import Limit
from mind2web2.llm_client.own_price import OwnPrice
from mind2web2.llm_client.settings import Servers
from mind2web2.plugins.cascade.models import JudgeCascade
from mind2web2.plugins.cascade.voting import (
    RULE,
    SHARE_OF_STRONG,
    second_judge_decides,
    votes_of_two,
)
from mind2web2.rubric.verdicts import Vote
from mind2web2.rubric.vote_rule import FIRST_VOTES
from mind2web2.runs.named_judge import only_fitting


@dataclass(frozen=True)
class CascadeSpec(ComposedSpec):
    """The strong judge.

    Args:
        first: the cheap judge, which votes on claims before this one.
    """

    first: JudgeSpec = field(default_factory=JudgeSpec)

    @classmethod
    def of(cls, strong: JudgeSpec, first: JudgeSpec) -> CascadeSpec:
        """Return a judge with another one before it."""
        own = {each.name: getattr(strong, each.name) for each in fields(JudgeSpec)}
        return cls(**own, first=first)

    @property
    def judges(self) -> tuple[JudgeSpec, ...]:
        """Return the single judges that it asks, the one that decides last."""
        return (*self.first.judges, self)

    @property
    def composition(self) -> str:
        """Return the name of the plugin's part by which the judges vote."""
        return "first_model"

    def expected_votes(
        self, votes: float, known: Sequence[Vote] | None = None, *, is_gate: bool = False
    ) -> tuple[float, ...]:
        """Return how many votes each of the two will probably cast on a claim."""
        if known is None:
            return FIRST_VOTES, votes * SHARE_OF_STRONG
        decides = second_judge_decides(known[:FIRST_VOTES], is_gate)
        return FIRST_VOTES, votes * decides

    def with_prices(self, prices: Mapping[str, OwnPrice]) -> CascadeSpec:
        """Return the judges with the user's prices by model."""
        strong = super().with_prices(prices)
        return self.of(strong, self.first.with_prices(prices))

    def record(self, endpoint: str | None = None) -> JudgeRecord:
        """Return both judges as results record them."""
        return self.record_with(endpoint, self.first.replayed_endpoint or self.first.endpoint)

    def record_with(self, endpoint: str | None, first_endpoint: str | None) -> JudgeRecord:
        """Return both judges as results record them, with the names of their servers."""
        first = {
            "first_model": self.first.model,
            "first_endpoint": first_endpoint,
            "doubt": RULE,
        }
        return super().record(endpoint).model_copy(update=first)

    def opened(self, make: JudgeMaker) -> CachingJudge:
        """Return the strong judge of a run, with the cheap one."""
        first, judge = make(self.first), make(self, CascadeJudge)
        assert isinstance(judge, CascadeJudge)
        judge.be_preceded_by(first)
        return judge

    def of_answer(
        self, run: CachingJudge, task_id: str, answer_name: str, limit: Limit | None
    ) -> AnswerJudge:
        """Return the judges as one answer asks them."""
        assert isinstance(run, CascadeJudge)
        return CascadeOfAnswer(run, task_id, answer_name, limit)


class CascadeJudge(CachingJudge):
    """The strong judge of a run, with the cheap one; both share one account of their use."""

    first: CachingJudge

    def be_preceded_by(self, first: CachingJudge) -> None:
        """Have another judge vote before this one."""
        assert isinstance(self.settings, CascadeSpec)
        self.settings = replace(self.settings, first=first.settings)
        self.first = first
        first.usage = self.usage

    @property
    def record(self) -> JudgeRecord:
        """Return both judges as results record them."""
        assert isinstance(self.settings, CascadeSpec)
        first = self.first.settings.replayed_endpoint or self.first.endpoint
        return self.settings.record_with(self.endpoint, first)

    def in_words(self) -> str:
        """Return who judges, for the report of a run."""
        first = f"{self.first.settings.model} ({self.first.endpoint})"
        return f"Judges: {first}, and {self.settings.model} ({self.endpoint}) for its {RULE}"

    def raise_if_unusable(self) -> None:
        """Raise ``JudgeUnusableError`` if one is unreachable or has rejected all requests."""
        self.first.raise_if_unusable()
        super().raise_if_unusable()

    def raise_if_out(self) -> None:
        """Raise ``JudgeUnavailableError`` if a server stayed away for longer than the run waits."""
        self.first.raise_if_out()
        super().raise_if_out()

    def try_again(self) -> None:
        """Send requests again although one was unreachable or has rejected requests."""
        self.first.try_again()
        super().try_again()

    async def write_rest(self) -> None:
        """Store replies that could not be stored before.

        Raises JudgmentStoreError: they still cannot.
        """
        await self.first.write_rest()
        await super().write_rest()

    def others_of_gates(self) -> tuple[object, ...]:
        """Return the first judge as the keys of records about skips name it."""
        server = self.first.settings.replayed_endpoint or self.first.endpoint
        return (self.first.settings.model, server, RULE)


class FirstOfAnswer(AnswerJudge):
    """The cheap judge as one answer asks it."""

    @property
    def served(self) -> Counter[tuple[str | None, str | None]]:
        """Return the number of judgments by the model and backend that its server reported."""
        return self._ledger.first_served


class CascadeOfAnswer(AnswerJudge):
    """The strong judge as one answer asks it, with the cheap one."""

    def __init__(
        self, run: CascadeJudge, task_id: str, answer_name: str, limit: Limit | None = None
    ) -> None:
        super().__init__(run, task_id, answer_name, limit)
        self.first = FirstOfAnswer(run.first, task_id, answer_name)
        # One answer has one failure and one ledger, whichever judge is asked.
        self.first.share(self)

    def be_part_of(self, answer: AnswerJudge) -> None:
        """Be asked one question of an answer."""
        assert isinstance(answer, CascadeOfAnswer)
        super().be_part_of(answer)
        self.first.be_part_of(answer.first)

    @property
    def voters(self) -> Sequence[str]:
        """Return the models that vote on claims, of which the last decides."""
        return (*self.first.voters, *super().voters)

    async def vote(self, ballot: Ballot[Judge, Shown]) -> Voted[Shown]:
        """Return the votes that decide a claim."""
        return await votes_of_two(self.first, self, ballot)

    def for_model(self, model: str) -> AnswerJudge:
        """Return the judge of a model that votes on claims."""
        return self.first if model == self.first.voters[0] else self


class Cascade:
    """How one judge is made of two, from settings and from results."""

    def knows(self, record: JudgeRecord) -> bool:
        """Tell whether the judges of a result voted by the rule of this version."""
        return record.doubt == RULE

    def preceded(self, strong: JudgeSpec, cascade: JudgeCascade) -> CascadeSpec:
        """Return a judge with a cheap one before it.

        Temperature, effort and further parameters are the strong judge's: models differ in what
        they take. The key is this judge's too, because it belongs to its server.

        Raises:
            UsageError: the cheap one's server cannot be used.
        """
        server = cascade.first_server()
        if server is None and isinstance(strong.base_url, Servers):
            raise UsageError(
                "the servers of a pool serve one model: name the first as MODEL@SERVER"
            )
        first = JudgeSpec(
            cascade.first,
            strong.base_url if server is None else server,
            strong.provider if server is None else "openai",
            strong.api_key if server is None else None,
            max_images=strong.max_images,
            outage_wait_s=strong.outage_wait_s,
            client=strong.client if server is None else None,
            delivery=strong.delivery,
        )
        return CascadeSpec.of(strong, first)

    def preceded_by_stored(
        self, strong: JudgeSpec, cascade: JudgeCascade, stored: Sequence[JudgeIdentity]
    ) -> CascadeSpec:
        """Return the judges of a replay.

        Raises UsageError: several cheap ones fit, or none does.
        """
        asked = {"model": cascade.first, "max_images": strong.max_images}
        servers = stored
        if cascade.server is not None and "://" in cascade.server:
            servers = [each for each in stored if cascade.server in each.endpoint]
        first = only_fitting(asked, servers, stored)
        return CascadeSpec.of(strong, _replayed(first.model, first.endpoint, first.max_images))

    def as_replay(self, record: JudgeRecord, judge: JudgeSpec) -> CascadeSpec:
        """Return the judges of a result for a replay."""
        server = server_named(record.first_endpoint)
        return CascadeSpec.of(judge, _replayed(str(record.first_model), server, record.max_images))

    def setting(self, record: JudgeRecord) -> tuple[str, object]:
        """Return the name and the value of the setting that names the judges of a result."""
        server = record.first_endpoint or ""
        address = server.rpartition(" ")[2]
        first = str(record.first_model)
        if server == record.endpoint or ("://" not in address and address != "pool"):
            return "judge_cascade", JudgeCascade(first, record.model)
        named = "FILE" if address == "pool" else address
        return "judge_cascade", JudgeCascade(first, record.model, named)

    async def votes(
        self, judges: Sequence[Voter], ballot: Ballot[Voter, Any]
    ) -> Voted[Any]:  # Any: what the judges are shown
        """Return the votes that decide a claim."""
        first, strong = judges
        return await votes_of_two(first, strong, ballot)


def _replayed(model: str, server: str | None, max_images: int | None) -> JudgeSpec:
    return JudgeSpec(model, provider=REPLAY, replayed_endpoint=server, max_images=max_images)


def cascade(strong: JudgeSpec, first: str) -> JudgeSpec:
    """Return two judges for a ``Scorer``: ``cascade(Judge(model=STRONG), first=CHEAP)``.

    Args:
        first: the cheap model, or ``MODEL@SERVER`` for one on another server.

    Raises:
        UsageError: they are not two models, or the server cannot be used.
    """
    try:
        models = JudgeCascade.parse(f"{first},{strong.model}")
    except ValueError as error:
        raise UsageError(
            f"first is {first!r} beside the model {strong.model!r}: {error}"
        ) from error
    return CASCADE.preceded(strong, models)


CASCADE = Cascade()
