"""What a user should know of a run's results before trusting its scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from mind2web2.answer_evaluation import AnswerOutcome
from mind2web2.cli.flagged_texts import flagged_line
from mind2web2.cli.metric_tables import counted
from mind2web2.provenance import provenance_in
from mind2web2.result_facts import (
    decisive_troubles,
    declined_counts,
    is_shown_in_part,
    leaves_of,
    pages_not_had,
    pages_not_read,
    quote_counts,
    refused_downloads,
    refused_pages,
)
from mind2web2.utils.names import name_list, natural_key
from mind2web2.written_tree import other_score_by_tree

_ON_PRIVATE_NETWORK = (
    "on this machine or its network: add --allow_private_network where you trust the answers"
)
_SCORES = {"passed": 1.0, "failed": 0.0, "skipped": 0.0, "initialized": 0.0}


def cautions(outcomes: Sequence[AnswerOutcome], recapture: str) -> list[str]:
    """Return, one line each, what may make scores others than the answers deserve.

    Args:
        recapture: the command that captures suspect pages again.
    """
    suspect: list[frozenset[str]] = []
    shown_in_part = 0
    found: list[str] = []
    for outcome in outcomes:
        if outcome.result is None:
            continue
        leaves = list(leaves_of(outcome.result))
        suspect += [troubles for leaf in leaves if (troubles := decisive_troubles(leaf))]
        shown_in_part += sum(map(is_shown_in_part, leaves))
        found += _of_answer(outcome, leaves)
    if suspect:
        # One entry a claim, so that the counts add up.
        kinds = Counter(" and ".join(sorted(troubles)) for troubles in suspect)
        listed = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
        found.insert(
            0,
            f"claims judged on pages that look wrong: {len(suspect)} ({listed}); look at these pages; to "
            f"capture them again: {recapture}",
        )
    if missing := _missing_line(outcomes):
        found.insert(0, missing)
    if shown_in_part:
        found.append(
            f"{counted(shown_in_part, 'claim')} judged without all images of a page, as the judge is shown "
            "fewer; the evidence says how many"
        )
    if downloads := _refused_downloads_line(outcomes):
        found.append(downloads)
    if declined := _declined_line(outcomes):
        found.append(declined)
    if misquoted := _misquoted_line(outcomes):
        found.append(misquoted)
    if flagged := flagged_line(outcomes):
        found.append(flagged)
    if ignored := _ignored_arguments_line(outcomes):
        found.append(ignored)
    return found


def _ignored_arguments_line(outcomes: Sequence[AnswerOutcome]) -> str | None:
    names: dict[str, set[str]] = {}
    for outcome in outcomes:
        ignored = (outcome.result or {}).get("ignored_arguments")
        if isinstance(ignored, list) and ignored:
            names.setdefault(outcome.task_id, set()).update(map(str, ignored))
    if not names:
        return None
    count = sum(map(len, names.values()))
    scripts = "; ".join(
        f"{task}.py: {', '.join(sorted(names[task]))}" for task in sorted(names, key=natural_key)
    )
    if count == 1:
        return f"1 argument was ignored, as the toolkit does not know it: {scripts}"
    return f"{count} arguments were ignored, as the toolkit does not know them: {scripts}"


def clock_line(outcomes: Sequence[AnswerOutcome]) -> str | None:
    """Return which scripts read the clock, and on which dates, in one line."""
    scripts: set[str] = set()
    dates: set[str] = set()
    is_fixed = True
    for outcome in outcomes:
        made_from = None if outcome.result is None else provenance_in(outcome.result)
        clock = None if made_from is None else made_from.inputs.clock
        if made_from is not None and clock is not None and clock.is_read:
            scripts.add(outcome.task_id)
            dates.add(clock.date)
            is_fixed = is_fixed and made_from.inputs.as_of is not None
    if not scripts:
        return None
    names = name_list(scripts)
    reads = "1 script reads" if len(scripts) == 1 else f"{len(scripts)} scripts read"
    how = "set by --as_of" if is_fixed else "--as_of fixes the date"
    return f"{reads} the clock: {names}; date seen: {name_list(dates)} ({how})"


def _missing_line(outcomes: Sequence[AnswerOutcome]) -> str | None:
    judged: set[tuple[str, str]] = set()
    read: list[tuple[str, str]] = []
    refused: set[tuple[str, str]] = set()
    for outcome in outcomes:
        if outcome.result is not None:
            task, leaves = outcome.task_id, leaves_of(outcome.result)
            judged |= {(task, url) for leaf in leaves for url in pages_not_had(leaf)}
            read += [(task, url) for url in pages_not_read(outcome.result)]
            refused |= {(task, url) for url in refused_pages(outcome.result)}
    pages = judged | set(read)
    if not pages:
        return None
    parts = [f"unavailable cited pages: {_by_task(pages)}"]
    parts += ["claims on them count as failed"] if judged else []
    parts += [f"{counted(len(read), 'extraction')} came out empty"] if read else []
    if private := len(pages & refused):
        parts.append(f"{private} of them {_ON_PRIVATE_NETWORK}")
    return "; ".join(parts)


def _refused_downloads_line(outcomes: Sequence[AnswerOutcome]) -> str | None:
    found = {
        (outcome.task_id, url)
        for outcome in outcomes
        if outcome.result is not None
        for url in refused_downloads(outcome.result)
    }
    if not found:
        return None
    return f"files that scripts could not download: {_by_task(found)}, {_ON_PRIVATE_NETWORK}"


def _by_task(pages: Collection[tuple[str, str]]) -> str:
    tasks = Counter(task for task, _ in pages)
    return f"{len(pages)} ({', '.join(f'{task} {count}' for task, count in sorted(tasks.items()))})"


def _declined_line(outcomes: Sequence[AnswerOutcome]) -> str | None:
    votes: Counter[str] = Counter()
    extractions: Counter[str] = Counter()
    for outcome in outcomes:
        if outcome.result is not None:
            of_votes, of_extractions = declined_counts(outcome.result)
            votes[outcome.task_id] += of_votes
            extractions[outcome.task_id] += of_extractions
    tasks = +(votes + extractions)
    if not tasks:
        return None
    listed = ", ".join(f"{task} {tasks[task]}" for task in sorted(tasks, key=natural_key))
    return (
        f"the judge refused to answer, twice each: votes {votes.total()}, extractions {extractions.total()} "
        f"({listed}); such votes count as not supported, such extractions as empty"
    )


def _misquoted_line(outcomes: Sequence[AnswerOutcome]) -> str | None:
    quoted = 0
    tasks: Counter[str] = Counter()
    for outcome in outcomes:
        counts = {} if outcome.result is None else quote_counts(outcome.result)
        quoted += sum(counts.values())
        tasks[outcome.task_id] += counts.get("not_found", 0)
    if not +tasks:
        return None
    listed = ", ".join(f"{task} {tasks[task]}" for task in sorted(+tasks, key=natural_key))
    return (
        f"passages that the judge quoted and that are not in what it was shown: {tasks.total()} of {quoted} "
        f"({listed}); no verdict changes for that"
    )


def _of_answer(outcome: AnswerOutcome, leaves: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    name = f"{outcome.task_id}/{outcome.answer_name}"
    result = outcome.result or {}
    errors = [leaf["id"] for leaf in leaves if leaf.get("evidence", {}).get("decided_by") == "error"]
    if errors:
        yield f"{name}: failed because of an error, see its log: {', '.join(errors)}"
    if result.get("undecided_leaves"):
        yield f"{name}: never decided by the script, counted 0: {', '.join(result['undecided_leaves'])}"
    if torn := [leaf["id"] for leaf in leaves if _is_torn(leaf)]:
        listed = ", ".join(torn)
        yield f"{name}: score and status, as the script has set them, contradict each other: {listed}"
    if not leaves:
        yield f"{name}: its script returned a score without a rubric tree, which cannot be checked"
    if (by_tree := other_score_by_tree(result)) is not None:
        score = result["final_score"]
        yield f"{name}: its script returned the score {score:g}, but its rubric tree has {by_tree:g}"
    if result.get("doubts"):
        doubts = "; ".join(result["doubts"])
        yield f"{name}: in doubt, the next run judges it again: {doubts}"


def _is_torn(leaf: Mapping[str, Any]) -> bool:
    # What the script decided, whatever the end of a sequence shows in its place.
    decided = leaf.get("superseded") or leaf
    status, score = decided.get("status"), decided.get("score")
    return status in _SCORES and score != _SCORES[status]
