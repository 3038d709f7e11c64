"""``mind2web2 compare``: whether agents differ by more than chance."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from mind2web2.analysis.comparison import Ranking, ranking
from mind2web2.analysis.corrected_pairs import CorrectedPair, corrected_pairs
from mind2web2.analysis.correction_record import CorrectionRoots
from mind2web2.analysis.judge_checks import failed_check
from mind2web2.cli.console import PlainConsole
from mind2web2.cli.options import load_function, settings_of
from mind2web2.cli.results.chosen import chosen_tasks
from mind2web2.cli.results.comparison_tables import print_ranking, print_verdict
from mind2web2.cli.results.corrections import pair_lines
from mind2web2.errors import UsageError
from mind2web2.results.known_answers import agent_answers, require_results
from mind2web2.results.scored_answer import scored_answers
from mind2web2.results.shards import shard_caution
from mind2web2.runs.settings import RunSettings
from mind2web2.utils.names import check_name
from mind2web2.utils.program import program

WORSE = 4


def run(options: argparse.Namespace) -> int:
    """Print the comparison and return the exit status: 4 where ``--fail_if_worse`` applies."""
    names = [name.rstrip("/") for name in options.agents]
    settings = settings_of(options)
    if options.why:
        return _explain(options, settings, names)
    if options.changes or options.ask or options.estimate:
        raise UsageError("--with, --ask and --estimate go with --why")
    if len(set(names)) < max(2, len(names)):
        raise UsageError(
            f"name at least two agents, each one once: {program()} compare {names[0]} OTHER_AGENT"
        )
    folders = {name: _results_folder(settings, name) for name in names}
    task_ids = chosen_tasks(settings, folders.values())
    agents = {name: agent_answers(folder.parent, folder.name) for name, folder in folders.items()}
    ranked = ranking(list(agents.items()), task_ids, allow_unfair=options.allow_unfair)
    cautions = [
        f"{name}: {caution}" for name, folder in folders.items() for caution in _cautions(folder)
    ]
    ranked = ranked.model_copy(update={"warnings": (*cautions, *ranked.warnings)})
    corrected = []
    if options.corrected:
        shared = set(ranked.tasks).intersection(
            *({one.task_id for one in scored_answers(answers)} for answers in agents.values())
        )
        roots = CorrectionRoots(Path(), options.audits_root, options.rejudged_root)
        corrected = corrected_pairs(roots, folders, shared)
    return _report(options, settings, ranked, corrected)


def _explain(options: argparse.Namespace, settings: RunSettings, names: list[str]) -> int:
    if options.corrected or options.allow_unfair or options.fail_if_worse is not None:
        raise UsageError(
            "--why tests nothing: leave out --fail_if_worse, --corrected and --allow_unfair"
        )
    explain = load_function("mind2web2_trust.why.command:run")
    sides = [_results_folder(settings, name) for name in names]
    status: int = explain(options, sides, chosen_tasks(settings, sides))
    return status


def _report(
    options: argparse.Namespace,
    settings: RunSettings,
    ranked: Ranking,
    corrected: Sequence[CorrectedPair],
) -> int:
    """Print the comparison, and return the exit status."""
    console, margin = PlainConsole(), options.fail_if_worse
    worse = []
    if margin is not None:
        pairs = ranked.metrics["avg_score"].against(ranked.agents[0])
        worse = [name for name, pair in pairs.items() if pair.is_worse_by(margin)]
    if options.json:
        content = {**ranked.model_dump(mode="json"), "worse": worse}
        if options.corrected:
            content["corrected"] = [pair.model_dump(mode="json") for pair in corrected]
        console.print_json(json.dumps(content))
    else:
        print_ranking(console, ranked, settings.options())
        for pair in corrected:
            console.print_lines(pair_lines(pair))
        if margin is not None:
            print_verdict(console, ranked, worse, margin)
    return WORSE if worse else 0


def _cautions(folder: Path) -> Iterator[str]:
    """Yield why an agent's results are to be compared with care."""
    return filter(None, (shard_caution(folder), failed_check(folder.parent, folder.name)))


def _results_folder(settings: RunSettings, name: str) -> Path:
    """Return the folder of results that an argument names."""
    if "/" in name:
        folder = Path(name)
    else:
        folder = settings.paths.eval_results_root / check_name("agent", name)
    require_results(folder.parent, folder.name)
    return folder
