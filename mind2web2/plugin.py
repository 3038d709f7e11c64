"""The names of the core that products and other packages may import, beside ``mind2web2.__all__``.

Each is loaded when it is first asked for, so that a command loads only what it uses. The list may
only get shorter: a test counts it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mind2web2.analysis.changed_pages import ChangedPages as ChangedPages
    from mind2web2.analysis.changed_pages import Excerpt as Excerpt
    from mind2web2.analysis.changed_pages import OtherReply as OtherReply
    from mind2web2.analysis.changed_pages import Share as Share
    from mind2web2.analysis.changed_pages import changed_pages as changed_pages
    from mind2web2.analysis.judgings import JudgedAgain as JudgedAgain
    from mind2web2.analysis.strong_sample import StrongSample as StrongSample
    from mind2web2.benchmark.tasks import find_tasks as find_tasks
    from mind2web2.benchmark.tasks import questions_of as questions_of
    from mind2web2.benchmark.tasks import select_tasks as select_tasks
    from mind2web2.bridges.tables import AnswerRecord as AnswerRecord
    from mind2web2.bridges.tables import LeafRecord as LeafRecord
    from mind2web2.bridges.tables import answer_rows as answer_rows
    from mind2web2.bridges.tables import leaf_records as leaf_records
    from mind2web2.capture.browser_manager import BatchBrowserManager as BatchBrowserManager
    from mind2web2.capture.models import CapturedPage as CapturedPage
    from mind2web2.capture.models import CaptureRecord as CaptureRecord
    from mind2web2.capture.models import CaptureSettings as CaptureSettings
    from mind2web2.capture.models import PageCapturer as PageCapturer
    from mind2web2.capture.office import office_html as office_html
    from mind2web2.capture.page.documents import FetchedDocument as FetchedDocument
    from mind2web2.capture.pdf import text_of as text_of
    from mind2web2.cli.console import PlainConsole as PlainConsole
    from mind2web2.cli.crawl_display import CrawlDisplay as CrawlDisplay
    from mind2web2.cli.estimate import print_estimate as print_estimate
    from mind2web2.cli.evaluate import prepare_settings as prepare_settings
    from mind2web2.cli.evaluate_run import run_evaluation as run_evaluation
    from mind2web2.cli.event_loop import run_to_exit as run_to_exit
    from mind2web2.cli.options import Subcommands as Subcommands
    from mind2web2.cli.options import settings_of as settings_of
    from mind2web2.cli.results.corrections import sample_lines as sample_lines
    from mind2web2.cli.scorer_options import scorer_of as scorer_of
    from mind2web2.errors import JudgeUnusableError as JudgeUnusableError
    from mind2web2.errors import MachineError as MachineError
    from mind2web2.errors import Mind2Web2Error as Mind2Web2Error
    from mind2web2.errors import UsageError as UsageError
    from mind2web2.hooks import Export as Export
    from mind2web2.hooks import Listener as Listener
    from mind2web2.hooks import ListenerOpener as ListenerOpener
    from mind2web2.judge.budget import Budget as Budget
    from mind2web2.judge.check_record import CheckRecord as CheckRecord
    from mind2web2.judge.judgment import Judgment as Judgment
    from mind2web2.judge.protocol import AskedQuestion as AskedQuestion
    from mind2web2.judge.store import STORE_NAME as STORE_NAME
    from mind2web2.judge.store import JudgmentStore as JudgmentStore
    from mind2web2.judge.tokens import text_tokens as text_tokens
    from mind2web2.judge.transfer import judgments_named as judgments_named
    from mind2web2.judge.usage import RunUsage as RunUsage
    from mind2web2.llm_client.chat import OwnPrice as OwnPrice
    from mind2web2.llm_client.chat import Usage as Usage
    from mind2web2.llm_client.prices import own_prices as own_prices
    from mind2web2.llm_client.prices import price_usd as price_usd
    from mind2web2.llm_client.prices import set_own_prices as set_own_prices
    from mind2web2.llm_client.prices import total_price_usd as total_price_usd
    from mind2web2.llm_client.settings import check_address as check_address
    from mind2web2.llm_client.settings import endpoint_of as endpoint_of
    from mind2web2.pages.archive import DEFAULT_ARCHIVE_URL as DEFAULT_ARCHIVE_URL
    from mind2web2.pages.archive import Archive as Archive
    from mind2web2.pages.barred import default_barred as default_barred
    from mind2web2.pages.cited_pages import AgentCache as AgentCache
    from mind2web2.pages.cited_pages import TaskCitations as TaskCitations
    from mind2web2.pages.crawl import CrawlProgress as CrawlProgress
    from mind2web2.pages.crawl import crawl as crawl
    from mind2web2.pages.library import PageLibrary as PageLibrary
    from mind2web2.pages.library import PageRequest as PageRequest
    from mind2web2.pages.prepared_page import PageSettings as PageSettings
    from mind2web2.results.answers import AnswerFile as AnswerFile
    from mind2web2.results.answers import AnswerJob as AnswerJob
    from mind2web2.results.answers import RunFolders as RunFolders
    from mind2web2.results.answers import TaskWork as TaskWork
    from mind2web2.results.answers import answer_file as answer_file
    from mind2web2.results.answers import read_answer as read_answer
    from mind2web2.results.answers import select_work as select_work
    from mind2web2.results.answers import uniform_text as uniform_text
    from mind2web2.results.freshness import prompts_sha256 as prompts_sha256
    from mind2web2.results.known_answers import agent_answers as agent_answers
    from mind2web2.results.known_answers import no_results as no_results
    from mind2web2.results.known_answers import require_results as require_results
    from mind2web2.results.provenance import Provenance as Provenance
    from mind2web2.results.result_file import ResultFile as ResultFile
    from mind2web2.results.stored_results import LoadedResult as LoadedResult
    from mind2web2.results.stored_results import answer_dir as answer_dir
    from mind2web2.results.stored_results import answer_results_dir as answer_results_dir
    from mind2web2.results.stored_results import latest_result as latest_result
    from mind2web2.results.stored_results import latest_results as latest_results
    from mind2web2.rubric.rescoring import Rescoring as Rescoring
    from mind2web2.rubric.verdicts import Evidence as Evidence
    from mind2web2.rubric.verdicts import Outcome as Outcome
    from mind2web2.rubric.verdicts import PageCheck as PageCheck
    from mind2web2.rubric.verdicts import Quote as Quote
    from mind2web2.rubric.verdicts import Vote as Vote
    from mind2web2.rubric.written_tree import WrittenNode as WrittenNode
    from mind2web2.runs.answer import AnswerOutcome as AnswerOutcome
    from mind2web2.runs.answer import answer_locked as answer_locked
    from mind2web2.runs.asked_judge import AskedJudge as AskedJudge
    from mind2web2.runs.capturing import capture_settings as capture_settings
    from mind2web2.runs.concurrency import Concurrency as Concurrency
    from mind2web2.runs.named_judge import judge_spec as judge_spec
    from mind2web2.runs.recorded_settings import recorded_settings as recorded_settings
    from mind2web2.runs.run import AnswerRunner as AnswerRunner
    from mind2web2.runs.run import RunProgress as RunProgress
    from mind2web2.runs.run import evaluate_work as evaluate_work
    from mind2web2.runs.session import OwnParts as OwnParts
    from mind2web2.runs.session import Session as Session
    from mind2web2.runs.session import budget_of as budget_of
    from mind2web2.runs.session import judge_client as judge_client
    from mind2web2.runs.session import open_run as open_run
    from mind2web2.runs.settings import SETTINGS as SETTINGS
    from mind2web2.runs.settings import RunSettings as RunSettings
    from mind2web2.runs.stored_runs import StoredRuns as StoredRuns
    from mind2web2.scoring.scorer import MissingPages as MissingPages
    from mind2web2.scripts.limits import DualSemaphore as DualSemaphore
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
    from mind2web2.urls.parts import normalize_url_for_browser as normalize_url_for_browser
    from mind2web2.urls.parts import split_url as split_url
    from mind2web2.urls.parts import undo_markdown_escapes as undo_markdown_escapes
    from mind2web2.urls.visible import visible as visible
    from mind2web2.utils.aio import all_or_first_error as all_or_first_error
    from mind2web2.utils.extras import missing_extra as missing_extra
    from mind2web2.utils.facts import NUMBER_WORDS as NUMBER_WORDS
    from mind2web2.utils.facts import Fact as Fact
    from mind2web2.utils.facts import FactKind as FactKind
    from mind2web2.utils.facts import facts_in as facts_in
    from mind2web2.utils.facts import facts_of_kind as facts_of_kind
    from mind2web2.utils.files import file_sha256 as file_sha256
    from mind2web2.utils.files import read_regular_file as read_regular_file
    from mind2web2.utils.files import text_sha256 as text_sha256
    from mind2web2.utils.files import write_whole as write_whole
    from mind2web2.utils.hidden_keys import hide_memory as hide_memory
    from mind2web2.utils.json_text import mapping as mapping
    from mind2web2.utils.junit import JUnitReport as JUnitReport
    from mind2web2.utils.names import check_name as check_name
    from mind2web2.utils.names import name_list as name_list
    from mind2web2.utils.path_config import PathConfig as PathConfig
    from mind2web2.utils.path_config import ScriptFile as ScriptFile
    from mind2web2.utils.path_config import script_in as script_in
    from mind2web2.utils.program import command_line as command_line
    from mind2web2.utils.program import program as program
    from mind2web2.utils.text import as_unicode_text as as_unicode_text
    from mind2web2.utils.text import counted as counted
    from mind2web2.utils.text import dollars as dollars
    from mind2web2.utils.text import number as number
    from mind2web2.utils.text import percent as percent
    from mind2web2.utils.text import with_sign as with_sign
    from mind2web2.utils.workers import call_in_worker as call_in_worker
    from mind2web2.utils.workers import end_after_call as end_after_call
    from mind2web2.utils.workers import run_in_worker as run_in_worker
    from mind2web2.verification.quotes import find_quote as find_quote
    from mind2web2.verification.run_questions import AskedClaim as AskedClaim
    from mind2web2.verification.run_questions import AskedForm as AskedForm
    from mind2web2.verification.single_questions import GivenPages as GivenPages
    from mind2web2.viewer.keys import AnswerKey as AnswerKey
    from mind2web2.viewer.markdown import markdown_tree as markdown_tree
    from mind2web2.viewer.report import write_view as write_view

HOMES = {
    "changed_pages": "mind2web2.analysis.changed_pages",
    "ChangedPages": "mind2web2.analysis.changed_pages",
    "Excerpt": "mind2web2.analysis.changed_pages",
    "OtherReply": "mind2web2.analysis.changed_pages",
    "Share": "mind2web2.analysis.changed_pages",
    "JudgedAgain": "mind2web2.analysis.judgings",
    "StrongSample": "mind2web2.analysis.strong_sample",
    "find_tasks": "mind2web2.benchmark.tasks",
    "questions_of": "mind2web2.benchmark.tasks",
    "select_tasks": "mind2web2.benchmark.tasks",
    "answer_rows": "mind2web2.bridges.tables",
    "AnswerRecord": "mind2web2.bridges.tables",
    "leaf_records": "mind2web2.bridges.tables",
    "LeafRecord": "mind2web2.bridges.tables",
    "BatchBrowserManager": "mind2web2.capture.browser_manager",
    "CapturedPage": "mind2web2.capture.models",
    "CaptureRecord": "mind2web2.capture.models",
    "CaptureSettings": "mind2web2.capture.models",
    "PageCapturer": "mind2web2.capture.models",
    "office_html": "mind2web2.capture.office",
    "FetchedDocument": "mind2web2.capture.page.documents",
    "text_of": "mind2web2.capture.pdf",
    "PlainConsole": "mind2web2.cli.console",
    "CrawlDisplay": "mind2web2.cli.crawl_display",
    "print_estimate": "mind2web2.cli.estimate",
    "prepare_settings": "mind2web2.cli.evaluate",
    "run_evaluation": "mind2web2.cli.evaluate_run",
    "run_to_exit": "mind2web2.cli.event_loop",
    "settings_of": "mind2web2.cli.options",
    "Subcommands": "mind2web2.cli.options",
    "sample_lines": "mind2web2.cli.results.corrections",
    "scorer_of": "mind2web2.cli.scorer_options",
    "JudgeUnusableError": "mind2web2.errors",
    "MachineError": "mind2web2.errors",
    "Mind2Web2Error": "mind2web2.errors",
    "UsageError": "mind2web2.errors",
    "Export": "mind2web2.hooks",
    "Listener": "mind2web2.hooks",
    "ListenerOpener": "mind2web2.hooks",
    "Budget": "mind2web2.judge.budget",
    "CheckRecord": "mind2web2.judge.check_record",
    "Judgment": "mind2web2.judge.judgment",
    "AskedQuestion": "mind2web2.judge.protocol",
    "JudgmentStore": "mind2web2.judge.store",
    "STORE_NAME": "mind2web2.judge.store",
    "text_tokens": "mind2web2.judge.tokens",
    "judgments_named": "mind2web2.judge.transfer",
    "RunUsage": "mind2web2.judge.usage",
    "OwnPrice": "mind2web2.llm_client.chat",
    "Usage": "mind2web2.llm_client.chat",
    "own_prices": "mind2web2.llm_client.prices",
    "price_usd": "mind2web2.llm_client.prices",
    "set_own_prices": "mind2web2.llm_client.prices",
    "total_price_usd": "mind2web2.llm_client.prices",
    "check_address": "mind2web2.llm_client.settings",
    "endpoint_of": "mind2web2.llm_client.settings",
    "Archive": "mind2web2.pages.archive",
    "DEFAULT_ARCHIVE_URL": "mind2web2.pages.archive",
    "default_barred": "mind2web2.pages.barred",
    "AgentCache": "mind2web2.pages.cited_pages",
    "TaskCitations": "mind2web2.pages.cited_pages",
    "crawl": "mind2web2.pages.crawl",
    "CrawlProgress": "mind2web2.pages.crawl",
    "PageLibrary": "mind2web2.pages.library",
    "PageRequest": "mind2web2.pages.library",
    "PageSettings": "mind2web2.pages.prepared_page",
    "answer_file": "mind2web2.results.answers",
    "AnswerFile": "mind2web2.results.answers",
    "AnswerJob": "mind2web2.results.answers",
    "read_answer": "mind2web2.results.answers",
    "RunFolders": "mind2web2.results.answers",
    "select_work": "mind2web2.results.answers",
    "TaskWork": "mind2web2.results.answers",
    "uniform_text": "mind2web2.results.answers",
    "prompts_sha256": "mind2web2.results.freshness",
    "agent_answers": "mind2web2.results.known_answers",
    "no_results": "mind2web2.results.known_answers",
    "require_results": "mind2web2.results.known_answers",
    "Provenance": "mind2web2.results.provenance",
    "ResultFile": "mind2web2.results.result_file",
    "answer_dir": "mind2web2.results.stored_results",
    "answer_results_dir": "mind2web2.results.stored_results",
    "latest_result": "mind2web2.results.stored_results",
    "latest_results": "mind2web2.results.stored_results",
    "LoadedResult": "mind2web2.results.stored_results",
    "Rescoring": "mind2web2.rubric.rescoring",
    "Evidence": "mind2web2.rubric.verdicts",
    "Outcome": "mind2web2.rubric.verdicts",
    "PageCheck": "mind2web2.rubric.verdicts",
    "Quote": "mind2web2.rubric.verdicts",
    "Vote": "mind2web2.rubric.verdicts",
    "WrittenNode": "mind2web2.rubric.written_tree",
    "answer_locked": "mind2web2.runs.answer",
    "AnswerOutcome": "mind2web2.runs.answer",
    "AskedJudge": "mind2web2.runs.asked_judge",
    "capture_settings": "mind2web2.runs.capturing",
    "Concurrency": "mind2web2.runs.concurrency",
    "judge_spec": "mind2web2.runs.named_judge",
    "recorded_settings": "mind2web2.runs.recorded_settings",
    "AnswerRunner": "mind2web2.runs.run",
    "evaluate_work": "mind2web2.runs.run",
    "RunProgress": "mind2web2.runs.run",
    "budget_of": "mind2web2.runs.session",
    "judge_client": "mind2web2.runs.session",
    "open_run": "mind2web2.runs.session",
    "OwnParts": "mind2web2.runs.session",
    "Session": "mind2web2.runs.session",
    "RunSettings": "mind2web2.runs.settings",
    "SETTINGS": "mind2web2.runs.settings",
    "StoredRuns": "mind2web2.runs.stored_runs",
    "MissingPages": "mind2web2.scoring.scorer",
    "DualSemaphore": "mind2web2.scripts.limits",
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
    "normalize_url_for_browser": "mind2web2.urls.parts",
    "split_url": "mind2web2.urls.parts",
    "undo_markdown_escapes": "mind2web2.urls.parts",
    "visible": "mind2web2.urls.visible",
    "all_or_first_error": "mind2web2.utils.aio",
    "missing_extra": "mind2web2.utils.extras",
    "Fact": "mind2web2.utils.facts",
    "FactKind": "mind2web2.utils.facts",
    "facts_in": "mind2web2.utils.facts",
    "facts_of_kind": "mind2web2.utils.facts",
    "NUMBER_WORDS": "mind2web2.utils.facts",
    "file_sha256": "mind2web2.utils.files",
    "read_regular_file": "mind2web2.utils.files",
    "text_sha256": "mind2web2.utils.files",
    "write_whole": "mind2web2.utils.files",
    "hide_memory": "mind2web2.utils.hidden_keys",
    "mapping": "mind2web2.utils.json_text",
    "JUnitReport": "mind2web2.utils.junit",
    "check_name": "mind2web2.utils.names",
    "name_list": "mind2web2.utils.names",
    "PathConfig": "mind2web2.utils.path_config",
    "script_in": "mind2web2.utils.path_config",
    "ScriptFile": "mind2web2.utils.path_config",
    "command_line": "mind2web2.utils.program",
    "program": "mind2web2.utils.program",
    "as_unicode_text": "mind2web2.utils.text",
    "counted": "mind2web2.utils.text",
    "dollars": "mind2web2.utils.text",
    "number": "mind2web2.utils.text",
    "percent": "mind2web2.utils.text",
    "with_sign": "mind2web2.utils.text",
    "call_in_worker": "mind2web2.utils.workers",
    "end_after_call": "mind2web2.utils.workers",
    "run_in_worker": "mind2web2.utils.workers",
    "find_quote": "mind2web2.verification.quotes",
    "AskedClaim": "mind2web2.verification.run_questions",
    "AskedForm": "mind2web2.verification.run_questions",
    "GivenPages": "mind2web2.verification.single_questions",
    "AnswerKey": "mind2web2.viewer.keys",
    "markdown_tree": "mind2web2.viewer.markdown",
    "write_view": "mind2web2.viewer.report",
}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(HOMES[name]), name)
