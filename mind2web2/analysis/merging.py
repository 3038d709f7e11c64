"""Merge folders of results, such as those of shards on several machines; sources are only read."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mind2web2.analysis.score_matrix import judges_of, script_warnings
from mind2web2.analysis.summaries import (
    failed_in,
    merge_all_results,
    summarise_answers,
    unscored_in,
    write_task_summary,
)
from mind2web2.errors import UsageError
from mind2web2.judge.judgment import Judgment
from mind2web2.judge.store import OWN_STORE, STORE_NAME, JudgmentStore
from mind2web2.judge.transfer import copied_store
from mind2web2.results.agent_summary import AgentSummary
from mind2web2.results.known_answers import task_answers
from mind2web2.results.scored_answer import scored_by_judge
from mind2web2.results.shards import SHARDS_NAME, shard_states, shards_text
from mind2web2.results.stored_results import latest_result, newest_result_name
from mind2web2.results.task_summary import SUMMARY_NAME
from mind2web2.results.usage_file import merge_usage
from mind2web2.utils.files import (
    first_link,
    is_leftover,
    links_in,
    read_regular_file,
    remove_leftovers,
    write_new,
    write_whole,
)
from mind2web2.utils.names import name_list, natural_key
from mind2web2.utils.process_lock import ProcessLock
from mind2web2.utils.text import number

_MAX_FILE_BYTES = 2 * 1024**3


@dataclass(slots=True)
class MergeReport:
    """The effect of a merge.

    It has new results and judgments by agent, its metrics, and contradictions.
    """

    results: Counter[str] = field(default_factory=Counter)
    judgments: Counter[str] = field(default_factory=Counter)
    summaries: dict[str, AgentSummary] = field(default_factory=dict)
    conflicts: list[str] = field(default_factory=list)


def merge_results(sources: Sequence[Path], into: Path) -> MergeReport:
    """Bring the results, judgments and costs of all agents together.

    A killed merge continues when it is repeated.

    Raises:
        UsageError: a source holds no results.
        OSError: a file cannot be read or written.
        ResultWriteError: a file cannot be written.
        JudgmentStoreError: judgments cannot be read or written.
    """
    agents = {source: _agents(source, into) for source in sources}
    report = MergeReport()
    lock = ProcessLock(into / ".merging.lock")
    with lock.hold(f"another mind2web2 import results writes to {into}: wait until it ends"):
        for source, names in agents.items():
            for agent in names:
                _merge_agent(_Places(source, into, agent), report)
        merged = {name for names in agents.values() for name in names}
        for agent in sorted(merged, key=natural_key):
            _sum_up(into, agent, report)
        merge_all_results(into)
    return report


def _sum_up(into: Path, agent: str, report: MergeReport) -> None:
    """Write an agent's metrics, and note results that were made differently."""
    summed = summarise_answers(into, agent)
    if summed is None:
        return
    report.summaries[agent] = summed.summary
    judged = scored_by_judge(summed.answers)
    judges = judges_of(judged)
    if len(judges) > 1:
        report.conflicts.append(
            f"{agent}: scores of different judges or votes: {name_list(judges)}"
        )
    report.conflicts += [f"{agent}: {text}" for text in script_warnings(judged)]


def _agents(source: Path, into: Path) -> list[str]:
    if source.resolve() == into.resolve():
        raise UsageError(f"{source} is also the folder to merge into: leave it out of the sources")
    if (source / SUMMARY_NAME).is_file() or (source / STORE_NAME).is_file():
        raise UsageError(
            f"{source} is the folder of one agent: name the one above it, {source.parent}"
        )
    names = [
        folder.name
        for folder in _folders(source)
        if any(
            any(folder.glob(known)) for known in (SHARDS_NAME, f"*/{SUMMARY_NAME}", "*/*/results")
        )
    ]
    if not names:
        raise UsageError(f"there are no results in {source}: name a folder such as eval_results")
    return sorted(names, key=natural_key)


@dataclass(frozen=True, slots=True)
class _Places:
    source: Path
    into: Path
    agent: str

    @property
    def folders(self) -> tuple[Path, Path]:
        """Return the agent's folder in the source and in the target."""
        return self.source / self.agent, self.into / self.agent


def _merge_agent(places: _Places, report: MergeReport) -> None:
    source, into = places.folders
    states = shard_states(source)
    # Shards are merged first. Otherwise the part that a killed merge leaves would look complete.
    _note_shards(into, dict.fromkeys(states, "started"))
    _merge_judgments(places, report)
    if links := links_in(source):
        some = name_list([str(link) for link in links])
        report.conflicts.append(f"{places.agent}: links are not followed, and left out: {some}")
    for folder in sorted(_folders(source), key=lambda folder: natural_key(folder.name)):
        _merge_task(places, folder.name, report)
    merge_usage(source, into)
    _note_shards(into, states)


def _note_shards(into: Path, states: Mapping[str, str]) -> None:
    known = shard_states(into)
    new = {name: state for name, state in states.items() if known.get(name, "started") == "started"}
    if new and known != {**known, **new}:
        write_whole(into / SHARDS_NAME, shards_text({**known, **new}))


def _merge_judgments(places: _Places, report: MergeReport) -> None:
    source, into = (folder / STORE_NAME for folder in places.folders)
    if source.is_symlink() or not source.is_file():
        return
    with (
        tempfile.TemporaryDirectory(prefix="mind2web2-") as scratch,
        JudgmentStore(into) as ours,
        # SQLite writes beside a store that it reads.
        JudgmentStore(copied_store(source, Path(scratch) / STORE_NAME, OWN_STORE)) as theirs,
    ):
        other: set[str] = set()
        for judgments in theirs.batches():
            stored = {(each.key, each.endpoint): each for each in ours.same_questions(judgments)}
            report.judgments[places.agent] += ours.add(judgments)
            other |= {
                f"{each.task_id}/{(each.answer_name or '').removesuffix('.md')}"
                for each in judgments
                if not _is_same_reply(each, stored.get((each.key, each.endpoint), each))
            }
    if other:
        report.conflicts.append(
            f"{places.agent}: {source} has other replies of the judge to the same requests, of "
            f"{name_list(other)}: those in {into} stay"
        )


def _is_same_reply(one: Judgment, other: Judgment) -> bool:
    return (one.outcome, one.text) == (other.outcome, other.text)


def _merge_task(places: _Places, task_id: str, report: MergeReport) -> None:
    theirs = task_answers(places.source, places.agent, task_id)
    if not theirs:
        return
    source, into = (folder / task_id for folder in places.folders)
    agreed = []
    for answer in theirs:
        stem = answer.answer_name.removesuffix(".md")
        if first_link(source / stem / "results", source) is not None:
            continue
        if conflict := _merge_answer(source / stem, into / stem, places.agent, report):
            report.conflicts.append(f"{places.agent}/{task_id}/{stem}: {conflict}")
        is_same = _newest(source / stem) == _newest(into / stem)
        if is_same and answer.is_judged and not _newest(source / stem):
            report.conflicts.append(
                f"{places.agent}/{task_id}/{stem}: {source / SUMMARY_NAME} has a score without a "
                "result file, which cannot be merged"
            )
        elif is_same:
            agreed.append(answer)
    current = [*task_answers(places.into, places.agent, task_id), *agreed]
    names = {answer.answer_name for answer in current}
    write_task_summary(
        places.into,
        places.agent,
        task_id,
        unscored_in(current),
        names,
        failed_in(current),
    )


def _merge_answer(source: Path, into: Path, agent: str, report: MergeReport) -> str | None:
    """Copy an answer's results, unless the target has the same or newer ones.

    Return a contradiction.
    """
    theirs, ours = _newest(source), _newest(into)
    if ours is not None:
        if theirs is None or _is_same_file(source / "results" / theirs, into / "results" / theirs):
            return None
        if not _is_same_file(source / "results" / ours, into / "results" / ours):
            return _difference(source / "results", into / "results")
    for path in _in_order(source, theirs):
        target = into / path.relative_to(source)
        content = read_regular_file(path, _MAX_FILE_BYTES)
        if target.name == f"{into.name}.md" and target.exists():
            write_whole(target, content)
        elif not target.exists():
            write_new(target, content)
            report.results[agent] += path.parent.name == "results"
    for folder in (into, into / "results", into / "logs"):
        remove_leftovers(folder)
    return None


def _folders(folder: Path) -> list[Path]:
    return [path for path in folder.glob("[!.]*/") if not path.is_symlink()]


def _in_order(folder: Path, newest: str | None) -> Iterator[Path]:
    """Yield the files of an answer: logs, earlier results, the text, and the newest result."""
    yield from _files(folder / "logs")
    yield from (path for path in _files(folder / "results") if path.name != newest)
    yield from (path for path in _files(folder) if path.name == f"{folder.name}.md")
    if newest is not None:
        yield folder / "results" / newest


def _files(folder: Path) -> list[Path]:
    # A link in a folder of another machine could lead to any file of this one.
    if folder.is_symlink():
        return []
    paths = (path for path in folder.glob("[!.]*") if path.is_file() and not path.is_symlink())
    return sorted(path for path in paths if not is_leftover(path.name))


def _newest(folder: Path) -> str | None:
    return newest_result_name(folder / "results")


def _is_same_file(one: Path, other: Path) -> bool:
    return (
        one.is_file()
        and other.is_file()
        and read_regular_file(one, _MAX_FILE_BYTES) == read_regular_file(other, _MAX_FILE_BYTES)
    )


def _difference(theirs: Path, ours: Path) -> str | None:
    """Return how the newest results of two folders differ.

    ``None`` where only their making does.
    """
    here, there = latest_result(ours), latest_result(theirs)
    if here is not None and there is not None and here.content.is_same_but_run(there.content):
        return None
    scores = [
        "damaged" if each is None else number(each.content.final_score) for each in (here, there)
    ]
    return (
        f"two different results: {scores[0]} in {ours}, {scores[1]} in {theirs}; the first stays: "
        "delete the one that is not to count, and merge again"
    )
