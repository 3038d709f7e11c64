"""Which files, settings and judge a result was made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from mind2web2.judge.judgment import JudgeIdentity, JudgmentSource
from mind2web2.judge.spec import JudgeSpec
from mind2web2.judge.voting import CASCADE_RULE
from mind2web2.rubric.vote_rule import ALWAYS
from mind2web2.scripts.inputs import ScriptInputs

# The provider that answers from stored judgments, and the name of its server.
REPLAY = "replay"
# The name under which versions list this package.
OWN_PACKAGE = "mind2web2"


class JudgeRecord(BaseModel):
    """The judge of a result and its parameters.

    Args:
        votes: how often it votes on a claim; results of earlier versions have the default.
        first_model: of the judge that was asked about claims before this one; ``None`` for one
            judge.
        doubt: where this judge decided in place of the first; results of earlier versions have
            other rules than ``CASCADE_RULE``.
    """

    model_config = ConfigDict(frozen=True)

    provider: str
    endpoint: str
    model: str
    temperature: float | None = None
    reasoning_effort: str | None = None
    max_images: int | None = None
    extra_body: str | None = None
    votes: str = ALWAYS
    first_model: str | None = None
    first_endpoint: str | None = None
    doubt: str | None = None

    @property
    def is_by_known_rules(self) -> bool:
        """Tell whether this version has the rules of votes and of two judges.

        Earlier ones had more.
        """
        return self.doubt in (None, CASCADE_RULE) and (
            self.votes == ALWAYS or self.votes.isdecimal()
        )

    @classmethod
    def of(
        cls, judge: JudgeSpec, endpoint: str | None = None, first_endpoint: str | None = None
    ) -> JudgeRecord:
        """Return the record of a run's judge, and of the one asked before it.

        Args:
            endpoint: of the judge's server, likewise ``first_endpoint``; default: those of the
                specs.
        """
        first = judge.preceding
        if first is not None:
            first_endpoint = first.replayed_endpoint or first_endpoint or first.endpoint
        return cls(
            provider=judge.provider,
            endpoint=judge.endpoint or "" if endpoint is None else endpoint,
            model=judge.model,
            temperature=judge.temperature,
            reasoning_effort=judge.reasoning_effort,
            max_images=judge.max_images,
            extra_body=judge.keyed_body,
            votes=str(judge.vote_rule),
            first_model=None if first is None else first.model,
            first_endpoint=None if first is None else first_endpoint,
            doubt=None if first is None else CASCADE_RULE,
        )

    def replayed(self) -> JudgeSpec:
        """Return the judge that answers from the stored judgments of this one."""
        first = None
        if self.first_model is not None:
            first = JudgeSpec(
                self.first_model,
                provider=REPLAY,
                max_images=self.max_images,
                replayed_endpoint=_server(self.first_endpoint),
            )
        return JudgeSpec(
            self.model,
            provider=REPLAY,
            temperature=self.temperature,
            reasoning_effort=self.reasoning_effort,
            max_images=self.max_images,
            extra_body=self.extra_body,
            votes=self.votes,
            first=first,
            replayed_endpoint=_server(self.endpoint),
        )

    def identities(self) -> list[JudgeIdentity]:
        """Return the judges in the store's form: this one, and the one asked before it."""
        deciding_judge = JudgeIdentity(
            model=self.model,
            endpoint=self.endpoint,
            temperature=self.temperature,
            reasoning_effort=self.reasoning_effort,
            max_images=self.max_images,
            extra_body=self.extra_body,
        )
        if self.first_model is None:
            return [deciding_judge]
        first = JudgeIdentity(
            model=self.first_model,
            endpoint=self.first_endpoint or self.endpoint,
            max_images=self.max_images,
        )
        return [deciding_judge, first]


def _server(endpoint: str | None) -> str | None:
    """Return a server by its name in records; a replay's own name is none."""
    return None if endpoint == REPLAY else endpoint


class Served(BaseModel):
    """The model behind some judgments, as the judge's server reported it.

    Args:
        model: the model's own name, such as one with a date.
        system_fingerprint: the backend's version.
        is_first: it is the judge that was asked before the other; ``None`` in results of earlier
            versions.
    """

    model_config = ConfigDict(frozen=True)

    model: str | None = None
    system_fingerprint: str | None = None
    judgments: int
    is_first: bool | None = None


class Premises(NamedTuple):
    """The fields in which two results must agree to compare their judges."""

    answer_sha256: str
    script_sha256: str
    settings_sha256: str


class Provenance(BaseModel):
    """Everything that determines a result.

    Args:
        answer_sha256: of the answer's text.
        script: version folder and file name of the eval script.
        script_sha256: of the script's bytes.
        dataset_commit: of the dataset with the script; ``None`` for other and changed scripts.
        settings_sha256: of all our texts that judges see, and of the default settings.
        pages: digest of every page that the script looked up; ``None`` where none was stored.
        listing_sha256: of the list of stored pages, if the script read that list.
        with_captures: pages that were not stored would have been captured.
        with_private_network: captures and downloads from private addresses were allowed.
        refused_pages: pages that were not captured because their addresses are private.
        refused_downloads: files that the script did not get for the same reason.
        other_pages: digests of judged pages that ``pages`` lacks: the script stored them itself.
        versions: of this package, of Python and of the libraries that shape requests; empty in
            results of earlier versions.
        served: the models behind the judgments.
        inputs: what the script read beside answer and pages.
        replayed_from: the file with the judgments of a replay; ``None`` in results of earlier
            versions.
    """

    model_config = ConfigDict(frozen=True)

    answer_sha256: str
    script: str
    script_sha256: str
    dataset_commit: str | None = None
    settings_sha256: str
    judge: JudgeRecord
    pages: Mapping[str, str | None]
    listing_sha256: str | None = None
    with_captures: bool = False
    with_private_network: bool = False
    refused_pages: tuple[str, ...] = ()
    refused_downloads: tuple[str, ...] = ()
    other_pages: Mapping[str, tuple[str | None, ...]] = Field(default_factory=dict)
    versions: Mapping[str, str] = Field(default_factory=dict)
    served: tuple[Served, ...] = ()
    inputs: ScriptInputs = ScriptInputs()
    replayed_from: JudgmentSource | None = None

    @property
    def premises(self) -> Premises:
        """Return the checksums of answer, script and settings."""
        return Premises(self.answer_sha256, self.script_sha256, self.settings_sha256)

    @property
    def package_version(self) -> str | None:
        """Return the version of this package, ``None`` in results of earlier versions."""
        return self.versions.get(OWN_PACKAGE)


def served_by(
    served: Mapping[tuple[str | None, str | None], int], *, is_first: bool = False
) -> tuple[Served, ...]:
    """Return the models behind judgments, the most frequent first."""
    ordered = sorted(served.items(), key=lambda item: (-item[1], str(item[0])))
    return tuple(
        Served(
            model=model,
            system_fingerprint=fingerprint,
            judgments=count,
            is_first=is_first,
        )
        for (model, fingerprint), count in ordered
    )
