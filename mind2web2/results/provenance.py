"""Which files, settings and judge a result was made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from mind2web2.judge.judgment import JudgmentSource
from mind2web2.judge.spec import JudgeRecord
from mind2web2.scripts.inputs import ScriptInputs

# The name under which versions list this package.
OWN_PACKAGE = "mind2web2"


class Served(BaseModel):
    """The model behind some judgments, as the judge's server reported it.

    Args:
        model: the model's own name, such as one with a date.
        system_fingerprint: the backend's version.
    """

    model_config = ConfigDict(frozen=True)

    model: str | None = None
    system_fingerprint: str | None = None
    judgments: int


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


def served_by(served: Mapping[tuple[str | None, str | None], int]) -> tuple[Served, ...]:
    """Return the models behind judgments, the most frequent first."""
    ordered = sorted(served.items(), key=lambda item: (-item[1], str(item[0])))
    return tuple(
        Served(
            model=model,
            system_fingerprint=fingerprint,
            judgments=count,
        )
        for (model, fingerprint), count in ordered
    )
