"""Human labels of judged leaves, and the verdicts of several auditors.

The labels are stored in ``audits/<agent>/<auditor>.jsonl``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from mind2web2.analysis.sample_basis import SampledFrom
from mind2web2.errors import ResultWriteError
from mind2web2.utils.files import read_regular_file

log = logging.getLogger(__name__)

Verdict = Literal["y", "n", "u"]


class LeafName(NamedTuple):
    """A leaf of an agent's result; ``answer`` is the file's name without ``.md``."""

    task: str
    answer: str
    leaf: str


class Label(BaseModel):
    """A person's verdict on a leaf: ``y`` supported, ``n`` not supported, ``u`` undecidable.

    Args:
        seen_sha256: of the claim and the pages, which is all that a label rests on.
        is_taken_back: the label before it does not count.
    """

    model_config = ConfigDict(frozen=True)

    agent: str
    task: str
    answer: str
    leaf: str
    label: Verdict
    note: str = ""
    seconds: float = 0.0
    seen_sha256: str
    is_taken_back: bool = False
    created: str

    @property
    def name(self) -> LeafName:
        """Return the leaf."""
        return LeafName(self.task, self.answer, self.leaf)


# By leaf, and by what a person saw of it.
Labels = Mapping[tuple[LeafName, str], Label]


_LINE: TypeAdapter[Label | SampledFrom] = TypeAdapter(Label | SampledFrom)


class LabelFile:
    """One auditor's labels of an agent's leaves."""

    def __init__(self, root: Path, agent: str, auditor: str) -> None:
        self._agent = agent
        self.path = root / agent / f"{auditor}.jsonl"

    def append(
        self,
        name: LeafName,
        seen_sha256: str,
        verdict: Verdict,
        *,
        note: str = "",
        seconds: float = 0.0,
        is_taken_back: bool = False,
    ) -> Label:
        """Write a label to the disk and return it.

        Raises ResultWriteError: it cannot be written.
        """
        made = Label(
            agent=self._agent,
            **name._asdict(),
            label=verdict,
            note=note,
            seconds=round(seconds, 1),
            seen_sha256=seen_sha256,
            is_taken_back=is_taken_back,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        self._write(made)
        return made

    def begin(self, population: SampledFrom) -> None:
        """Write which answers the next labels are a sample of.

        Nothing is written if the last labels are a sample of the same answers.

        Raises ResultWriteError: it cannot be written.
        """
        if self.sampled_from() != population:
            self._write(population)

    def _write(self, content: Label | SampledFrom) -> None:
        line = content.model_dump_json().encode("utf-8", "backslashreplace") + b"\n"
        with ResultWriteError.unable_to(f"write to {self.path}"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                # A line that a crash cut short must not swallow this one.
                if file.tell() and not self._ends_with_line():
                    line = b"\n" + line
                file.write(line)
                file.flush()
                os.fsync(file.fileno())

    def blind(self) -> Labels:
        """Return each leaf's first label; labels that were taken back do not count."""
        first_labels: dict[tuple[LeafName, str], Label] = {}
        for line in self._lines():
            if not isinstance(line, Label):
                continue
            place = (line.name, line.seen_sha256)
            if line.is_taken_back:
                first_labels.pop(place, None)
            else:
                first_labels.setdefault(place, line)
        return first_labels

    def sampled_from(self) -> SampledFrom | None:
        """Return the answers that the latest labels are a sample of, ``None`` where no label is."""
        samples = [line for line in self._lines() if isinstance(line, SampledFrom)]
        return samples[-1] if samples else None

    def _lines(self) -> Iterable[Label | SampledFrom]:
        if not self.path.is_file():
            return
        for number, line in enumerate(read_regular_file(self.path).splitlines(), start=1):
            try:
                yield _LINE.validate_json(line)
            except ValidationError:
                # A crash may have cut the line short.
                log.warning("left out: %s, line %d is not a label", self.path, number)

    def _ends_with_line(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"


def auditors(root: Path, agent: str) -> list[str]:
    """Return who has labelled leaves of an agent."""
    return sorted(path.stem for path in (root / agent).glob("*.jsonl"))


def labels_by_auditor(root: Path, agent: str) -> dict[str, Labels]:
    """Return the labels of each auditor who has given any."""
    labels = {name: LabelFile(root, agent, name).blind() for name in auditors(root, agent)}
    return {name: of_auditor for name, of_auditor in labels.items() if of_auditor}


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts of auditors on leaves.

    Args:
        passes: 1 where most auditors support the claim, 0 where most do not, 0.5 where as many do
            as do not.
        undecidable: leaves of which every label says so.
    """

    passes: Mapping[LeafName, float]
    undecidable: frozenset[LeafName]


def verdicts_of(leaves: Iterable[tuple[LeafName, str]], labels: Sequence[Labels]) -> Verdicts:
    """Return the verdicts of one or several auditors together.

    Args:
        leaves: with what a person sees of each now; labels of anything else do not count.
        labels: of each auditor, in any order.
    """
    passes: dict[LeafName, float] = {}
    undecidable = set()
    for place in leaves:
        labels_of_leaf = [by_place[place].label for by_place in labels if place in by_place]
        decided = [label == "y" for label in labels_of_leaf if label != "u"]
        if decided:
            lead = 2 * sum(decided) - len(decided)
            passes[place[0]] = 0.5 if lead == 0 else float(lead > 0)
        elif labels_of_leaf:
            undecidable.add(place[0])
    return Verdicts(passes, frozenset(undecidable))
