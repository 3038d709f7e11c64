"""``mind2web2 probe``: ask the judge about changed pages, and print how often it noticed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from mind2web2.plugin import (
    AgentResults,
    AskedJudge,
    ChangedPages,
    PageLibrary,
    PlainConsole,
    RunSettings,
    UsageError,
    counted,
    settings_of,
    write_whole,
)
from mind2web2_trust.probe.asking import SOURCE, Reply, ask_probes
from mind2web2_trust.probe.cases import CaseReader, passed_claims
from mind2web2_trust.probe.drafting import Draft, Drafting, Probe
from mind2web2_trust.probe.estimate import estimate_line
from mind2web2_trust.probe.outputs import print_report
from mind2web2_trust.probe.report import compared, probe_report
from mind2web2_trust.probe.survivors_page import survivors_page

_STOPPED = "Stopped. Every reply so far is kept: the same command continues from here."


def run(options: argparse.Namespace) -> int:
    """Probe the judges, print the figures and return the exit status."""
    console = PlainConsole(outlives_reader=True)
    settings = settings_of(options, is_announced=not options.json)
    results = AgentResults(settings.paths.eval_results_root, options.agent)
    results.require()
    models = options.judge_models or [settings.judge_model or _judge_of_results(results)]
    plan = _Plan(
        options.agent,
        [replace(settings, judge_model=model, no_capture=True) for model in models],
        options.sample,
        options.seed,
    )
    work = (
        _print_estimate(plan, console)
        if options.estimate
        else _probe_judges(plan, console, options)
    )
    return console.run(work, _STOPPED)


def _judge_of_results(results: AgentResults) -> str:
    models = (loaded.content.judge_model for _, _, loaded in results.latest())
    model = next(filter(None, models), None)
    if model is None:
        raise UsageError(f"no result of {results.agent} names a judge: add --judge_model")
    return model


@dataclass(frozen=True)
class _Plan:
    agent: str
    judges: Sequence[RunSettings]
    sample: int
    seed: int

    def drafting(self) -> Drafting:
        """Return what makes the probes, from the claims in random order."""
        settings, paths = self.judges[0], self.judges[0].paths
        claims = passed_claims(paths.eval_results_root, self.agent, settings.task_ids or ())
        Random(self.seed).shuffle(claims.quoted)
        reader = CaseReader(
            paths.cache_root / self.agent,
            paths.answers_root / self.agent,
            PageLibrary(),
        )
        return Drafting(self.agent, claims, reader, Draft(self.seed))


async def _print_estimate(plan: _Plan, console: PlainConsole) -> int:
    drafting = plan.drafting()
    probes = await drafting.first(plan.sample)
    console.print_lines(estimate_line(probes, settings) for settings in plan.judges)
    if len(drafting.draft.probes) < plan.sample:
        console.print_line(
            f"The results have {counted(len(drafting.draft.probes), 'probe')} at most."
        )
    console.print_line("Nothing was asked.")
    return 0


async def _probe_judges(plan: _Plan, console: PlainConsole, options: argparse.Namespace) -> int:
    drafting = plan.drafting()
    probes = await drafting.first(plan.sample)
    reports = []
    replies_of: list[list[Reply]] = []
    for settings in plan.judges:
        replies = await _ask_judge(plan, settings, probes, console)
        report = probe_report(plan.agent, settings.model, plan.seed, drafting.draft, replies)
        report.write()
        reports.append(report)
        replies_of.append(replies)
    if options.output is not None:
        write_whole(options.output, survivors_page(reports))
        if not options.json:
            console.print_line(f"The verdicts that stayed: {options.output}")
    if options.json:
        sys.stdout.write(f"[{','.join(report.model_dump_json() for report in reports)}]\n")
    else:
        for report in reports:
            print_report(console, report, drafting.claims.others, shows_all=options.survivors)
        for other, replies in zip(reports[1:], replies_of[1:], strict=True):
            console.print_line(compared(reports[0].judge, replies_of[0], other.judge, replies))
    return 1 if any(report.failed for report in reports) else 0


async def _ask_judge(
    plan: _Plan, settings: RunSettings, probes: Sequence[Probe], console: PlainConsole
) -> list[Reply]:
    """Ask one judge all probes of the sample."""
    folder = ChangedPages.folder(plan.agent, settings.model)
    async with AskedJudge.opened(settings, folder, SOURCE) as judge:
        with console.show_progress("probes", len(probes)) as advance:
            return await ask_probes(judge, probes, advance)
