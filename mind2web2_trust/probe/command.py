"""The parser of ``mind2web2 probe``."""

from __future__ import annotations

from pathlib import Path

from mind2web2.plugin import Subcommands

_DESCRIPTION = """\
Would the judge have noticed? Take claims that passed, change the fact on the cited page that supports each
one, and ask the judge again. A verdict that stays did not come from the page. You need no labels.

  mind2web2 probe my_agent --estimate                       print what it will cost, and ask nothing
  mind2web2 probe my_agent                                  make 200 probes with the judge of the results
  mind2web2 probe my_agent --judge_model o4-mini --judge_model gpt-5-mini
                                                            compare two judges
  mind2web2 probe my_agent -o survivors.html                show the verdicts that stayed, page beside page
  mind2web2 probe my_agent --sample 400                     go on with the same sample to 400 probes

Results and scores do not change. Replies are stored in probes/, so the same command costs nothing again.
"""


def add_command(commands: Subcommands) -> None:
    """Add ``probe`` to ``mind2web2``."""
    parser = commands.add_parser(
        "probe",
        help="find out whether the judge notices changed facts on pages",
        description=_DESCRIPTION,
    )
    add = parser.add_argument
    add("agent", metavar="AGENT", help="the agent whose results are probed")
    add(
        "--sample",
        metavar="N",
        type="positive_int",
        default=200,
        help="the number of probes; a larger N adds to the same sample (default: 200)",
    )
    add(
        "--seed",
        type=int,
        default=0,
        help="the seed of the sample; another seed makes other probes (default: 0)",
    )
    add(
        "--survivors",
        action="store_true",
        help="print each verdict that stayed, with its page",
    )
    add(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        help="write the verdicts that stayed into an HTML file, each with its page before and "
        "after",
    )
    add(
        "--estimate",
        action="store_true",
        help="print requests, tokens and dollars, and ask nothing",
    )
    parser.add_json_option()
    parser.add_judge_settings(
        "judgments",
        "max_llm_requests",
        "max_cost",
        # As declared, since a probe may be replayed.
        changed={"llm_provider": {}},
        judges="the judge to probe (default: the one that made the results); repeat it to compare "
        "several",
        group=parser.add_argument_group("judge"),
    )
    parser.add_task_option("all that have results")
    parser.add_folder_options("eval_results_root", "answer_folder", "cache_root")
    parser.set_defaults(run="mind2web2_trust.probe.probing")
