"""The names of the core that products and other packages may import, beside ``mind2web2.__all__``.

Each is loaded when it is first asked for, so that a command loads only what it uses. The list may
only get shorter: a test counts it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind2web2.utils import late_names

if TYPE_CHECKING:
    from mind2web2.analysis.changed_pages import ChangedPages as ChangedPages
    from mind2web2.analysis.judgings import JudgedAgain as JudgedAgain
    from mind2web2.analysis.strong_sample import StrongSample as StrongSample
    from mind2web2.benchmark.tasks import find_tasks as find_tasks
    from mind2web2.bridges.tables import AnswerRecord as AnswerRecord
    from mind2web2.bridges.tables import answer_rows as answer_rows
    from mind2web2.bridges.tables import leaf_records as leaf_records
    from mind2web2.capture.models import CapturedPage as CapturedPage
    from mind2web2.capture.page.documents import FetchedDocument as FetchedDocument
    from mind2web2.cli.address_crawl import AddressCrawl as AddressCrawl
    from mind2web2.cli.console import PlainConsole as PlainConsole
    from mind2web2.cli.evaluate import AgentEvaluation as AgentEvaluation
    from mind2web2.cli.options import Subcommands as Subcommands
    from mind2web2.cli.options import settings_of as settings_of
    from mind2web2.errors import Mind2Web2Error as Mind2Web2Error
    from mind2web2.errors import UsageError as UsageError
    from mind2web2.hooks import Listener as Listener
    from mind2web2.judge.check_record import CheckRecord as CheckRecord
    from mind2web2.judge.protocol import AskedQuestion as AskedQuestion
    from mind2web2.judge.tokens import text_tokens as text_tokens
    from mind2web2.pages.barred import default_barred as default_barred
    from mind2web2.pages.library import PageLibrary as PageLibrary
    from mind2web2.results.agent_results import AgentResults as AgentResults
    from mind2web2.results.answers import AnswerJob as AnswerJob
    from mind2web2.results.answers import read_answer as read_answer
    from mind2web2.results.answers import uniform_text as uniform_text
    from mind2web2.results.result_file import ResultFile as ResultFile
    from mind2web2.rubric.written_tree import WrittenNode as WrittenNode
    from mind2web2.runs.answer import AnswerOutcome as AnswerOutcome
    from mind2web2.runs.asked_judge import AskedJudge as AskedJudge
    from mind2web2.runs.capturing import BrowserSetup as BrowserSetup
    from mind2web2.runs.material import Material as Material
    from mind2web2.runs.part import JudgedPart as JudgedPart
    from mind2web2.runs.part import PartOfRun as PartOfRun
    from mind2web2.runs.recorded_settings import recorded_settings as recorded_settings
    from mind2web2.runs.session import Session as Session
    from mind2web2.runs.settings import RunSettings as RunSettings
    from mind2web2.runs.stored_runs import StoredRuns as StoredRuns
    from mind2web2.scripts.loops import only_known as only_known
    from mind2web2.scripts.made_up import Choices as Choices
    from mind2web2.scripts.made_up import FieldShape as FieldShape
    from mind2web2.scripts.policies import PolicyRun as PolicyRun
    from mind2web2.scripts.policies import PolicyScript as PolicyScript
    from mind2web2.scripts.policies import Surroundings as Surroundings
    from mind2web2.scripts.rubric_reading import ReadRubric as ReadRubric
    from mind2web2.scripts.rubric_script import script_of as script_of
    from mind2web2.scripts.yaml_lines import AuthorFile as AuthorFile
    from mind2web2.scripts.yaml_lines import YamlFileError as YamlFileError
    from mind2web2.statistics.paired import Estimate as Estimate
    from mind2web2.statistics.paired import PairedTest as PairedTest
    from mind2web2.urls.markdown import Address as Address
    from mind2web2.urls.markdown import AddressText as AddressText
    from mind2web2.urls.parts import lookup_key as lookup_key
    from mind2web2.urls.visible import visible as visible
    from mind2web2.utils.facts import NUMBER_WORDS as NUMBER_WORDS
    from mind2web2.utils.facts import Fact as Fact
    from mind2web2.utils.facts import facts_in as facts_in
    from mind2web2.utils.files import read_regular_file as read_regular_file
    from mind2web2.utils.files import write_whole as write_whole
    from mind2web2.utils.junit import JUnitReport as JUnitReport
    from mind2web2.utils.names import check_name as check_name
    from mind2web2.utils.program import command_line as command_line
    from mind2web2.utils.text import counted as counted
    from mind2web2.utils.text import dollars as dollars
    from mind2web2.utils.text import number as number
    from mind2web2.utils.text import percent as percent
    from mind2web2.utils.workers import run_in_worker as run_in_worker
    from mind2web2.verification.quotes import find_quote as find_quote
    from mind2web2.verification.run_questions import AskedClaim as AskedClaim
    from mind2web2.verification.run_questions import AskedForm as AskedForm
    from mind2web2.verification.single_questions import GivenPages as GivenPages
    from mind2web2.viewer.markdown import markdown_tree as markdown_tree
    from mind2web2.viewer.report import write_view as write_view

HOMES = {
    "ChangedPages": "mind2web2.analysis.changed_pages",
    "JudgedAgain": "mind2web2.analysis.judgings",
    "StrongSample": "mind2web2.analysis.strong_sample",
    "find_tasks": "mind2web2.benchmark.tasks",
    "answer_rows": "mind2web2.bridges.tables",
    "AnswerRecord": "mind2web2.bridges.tables",
    "leaf_records": "mind2web2.bridges.tables",
    "CapturedPage": "mind2web2.capture.models",
    "FetchedDocument": "mind2web2.capture.page.documents",
    "AddressCrawl": "mind2web2.cli.address_crawl",
    "PlainConsole": "mind2web2.cli.console",
    "AgentEvaluation": "mind2web2.cli.evaluate",
    "settings_of": "mind2web2.cli.options",
    "Subcommands": "mind2web2.cli.options",
    "Mind2Web2Error": "mind2web2.errors",
    "UsageError": "mind2web2.errors",
    "Listener": "mind2web2.hooks",
    "CheckRecord": "mind2web2.judge.check_record",
    "AskedQuestion": "mind2web2.judge.protocol",
    "text_tokens": "mind2web2.judge.tokens",
    "default_barred": "mind2web2.pages.barred",
    "PageLibrary": "mind2web2.pages.library",
    "AgentResults": "mind2web2.results.agent_results",
    "AnswerJob": "mind2web2.results.answers",
    "read_answer": "mind2web2.results.answers",
    "uniform_text": "mind2web2.results.answers",
    "ResultFile": "mind2web2.results.result_file",
    "WrittenNode": "mind2web2.rubric.written_tree",
    "AnswerOutcome": "mind2web2.runs.answer",
    "AskedJudge": "mind2web2.runs.asked_judge",
    "BrowserSetup": "mind2web2.runs.capturing",
    "Material": "mind2web2.runs.material",
    "JudgedPart": "mind2web2.runs.part",
    "PartOfRun": "mind2web2.runs.part",
    "recorded_settings": "mind2web2.runs.recorded_settings",
    "Session": "mind2web2.runs.session",
    "RunSettings": "mind2web2.runs.settings",
    "StoredRuns": "mind2web2.runs.stored_runs",
    "only_known": "mind2web2.scripts.loops",
    "Choices": "mind2web2.scripts.made_up",
    "FieldShape": "mind2web2.scripts.made_up",
    "PolicyRun": "mind2web2.scripts.policies",
    "PolicyScript": "mind2web2.scripts.policies",
    "Surroundings": "mind2web2.scripts.policies",
    "ReadRubric": "mind2web2.scripts.rubric_reading",
    "script_of": "mind2web2.scripts.rubric_script",
    "AuthorFile": "mind2web2.scripts.yaml_lines",
    "YamlFileError": "mind2web2.scripts.yaml_lines",
    "Estimate": "mind2web2.statistics.paired",
    "PairedTest": "mind2web2.statistics.paired",
    "Address": "mind2web2.urls.markdown",
    "AddressText": "mind2web2.urls.markdown",
    "lookup_key": "mind2web2.urls.parts",
    "visible": "mind2web2.urls.visible",
    "Fact": "mind2web2.utils.facts",
    "facts_in": "mind2web2.utils.facts",
    "NUMBER_WORDS": "mind2web2.utils.facts",
    "read_regular_file": "mind2web2.utils.files",
    "write_whole": "mind2web2.utils.files",
    "JUnitReport": "mind2web2.utils.junit",
    "check_name": "mind2web2.utils.names",
    "command_line": "mind2web2.utils.program",
    "counted": "mind2web2.utils.text",
    "dollars": "mind2web2.utils.text",
    "number": "mind2web2.utils.text",
    "percent": "mind2web2.utils.text",
    "run_in_worker": "mind2web2.utils.workers",
    "find_quote": "mind2web2.verification.quotes",
    "AskedClaim": "mind2web2.verification.run_questions",
    "AskedForm": "mind2web2.verification.run_questions",
    "GivenPages": "mind2web2.verification.single_questions",
    "markdown_tree": "mind2web2.viewer.markdown",
    "write_view": "mind2web2.viewer.report",
}

__getattr__ = late_names(__name__, HOMES)
