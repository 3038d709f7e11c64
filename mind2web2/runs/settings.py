# ruff: noqa: RUF009 (the calls in the class return fields)
"""The settings of a run: each is declared once, with its type, default, option, help and conflicts.

The command line, ``mind2web2.toml``, ``serve``, the nodes of a cluster and ``docs/options.md`` read
these declarations. A new option is a new field of ``RunSettings``. Nothing here loads much:
``--help`` needs it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mind2web2.errors import UsageError
from mind2web2.llm_client.settings import (
    DEFAULT_JUDGE_MODEL,
    OWN_PARAMETERS,
    check_address,
)
from mind2web2.results.shards import Shard
from mind2web2.rubric.vote_rule import DEFAULT_TRIALS, vote_count
from mind2web2.runs.setting import InFile, Setting, declared_in, flag, setting
from mind2web2.utils import values
from mind2web2.utils.entry_points import parts_of
from mind2web2.utils.moments import parse_moment
from mind2web2.utils.path_config import PathConfig

if TYPE_CHECKING:
    from mind2web2.llm_client.chat import OwnPrice
    from mind2web2.utils.json_text import JsonObject

JUDGE_PROVIDERS = ("openai", "azure_openai")
REPLAY = "replay"
PLAIN, RAY = "plain", "ray"
# The settings that name the judge.
JUDGE_NAMES = ("llm_provider", "judge_model", "judge_base_url")
# Everything that says how the judge is asked.
JUDGE_SETTINGS = (
    "llm_provider",
    "judge_model",
    "judge_base_url",
    "judge_extra_body",
    "judge_reasoning_effort",
    "judge_temperature",
    "no_screenshots",
)
FOLDER_NAMES = ("answer_folder", "eval_scripts_root", "eval_results_root", "cache_root")

JUDGE_HELP = (
    "the provider of the judge. openai needs OPENAI_API_KEY and also reads OPENAI_BASE_URL; "
    "azure_openai needs AZURE_OPENAI_API_KEY, AZURE_OPENAI_ENDPOINT_URL and "
    "AZURE_OPENAI_API_VERSION; anthropic needs ANTHROPIC_API_KEY; bedrock_anthropic needs "
    "AWS_ACCESS_KEY, AWS_SECRET_KEY and AWS_REGION; gemini needs GEMINI_API_KEY"
)
_EXTRA_BODY_EXAMPLE = '{"chat_template_kwargs": {"enable_thinking": false}}'
# Parameters of a request that options set.
_PARAMETER_OPTIONS = {
    "model": "--judge_model",
    "temperature": "--judge_temperature",
    "reasoning_effort": "--judge_reasoning_effort",
}


# Values that need more than a function of ``utils/values``


def as_of(text: str) -> datetime | Literal["answer"]:
    """Return the moment that a script's clock shows, or ``"answer"`` for that of each answer."""
    if text == "answer":
        return "answer"
    try:
        return parse_moment(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither a date such as 2025-03-14 nor 'answer'") from None


def extra_body(text: str) -> str:
    """Return a JSON object of request parameters in its shortest form."""
    try:
        parameters = json.loads(text, parse_constant=_refused_constant)
    except (ValueError, RecursionError):
        parameters = None
    if not isinstance(parameters, dict):
        raise ValueError(f"{text!r} is not a JSON object such as {_EXTRA_BODY_EXAMPLE}")
    if own := sorted(OWN_PARAMETERS & parameters.keys()):
        option = f": use {_PARAMETER_OPTIONS[own[0]]}" if own[0] in _PARAMETER_OPTIONS else ""
        raise ValueError(f"{own[0]} is not free to choose{option}")
    return json.dumps(parameters, sort_keys=True, separators=(",", ":"))


def _refused_constant(name: str) -> float:
    raise ValueError(name)


def _extra_body_in_file(body: str | JsonObject) -> str:
    return extra_body(body if isinstance(body, str) else json.dumps(body, default=str))


def _server_in_file(url: str) -> str:
    check_address(url, "mind2web2.toml: judge_base_url")
    return url


def provider_names() -> tuple[str, ...]:
    """Return the names of all providers of judges."""
    return (*JUDGE_PROVIDERS, *parts_of("judges"))


def provider(text: str) -> str:
    """Return the name of a provider of judges."""
    return values.one_of(provider_names())(text)


def _provider_or_replay(text: str) -> str:
    return values.one_of((*provider_names(), REPLAY))(text)


def _provider_in_file(text: str) -> str:
    if text not in provider_names():
        raise ValueError(f"{text!r} is not one of {', '.join(provider_names())}")
    return text


def _folder_in_file(example: str) -> InFile:
    return InFile(f'"{example}"', (str,))


_FOLDERS = "folders"
_JUDGE = "judge"
_LIMITS = "limits"
_COSTS = "costs"
_SCRIPTS = "eval scripts"
_PAGES = "pages that are not cached"
_MACHINES = "machines"
GROUP_HELPS = {_PAGES: "A page is captured when a claim needs it, and then stays in the cache."}
_COUNT_IN_FILE = InFile("3", (int,))


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """The settings of a run, as command line, file or caller gave them."""

    agent_name: str | None = setting(
        None,
        Setting(
            "the agent, a folder under answers/",
            parse=str,
            metavar="NAME",
            is_common=True,
        ),
    )
    task_ids: tuple[str, ...] = setting(
        (),
        Setting(
            "only this task; may be repeated",
            parse=str,
            metavar="ID",
            option="--task_id",
            is_repeated=True,
            default_text="all that have answers",
            is_common=True,
        ),
    )
    answer_folder: Path | None = setting(
        None,
        Setting(
            "the agents' answers",
            parse=values.local_path,
            metavar="DIR",
            group=_FOLDERS,
            default_text="answers/",
            in_file=_folder_in_file("../project/answers"),
        ),
    )
    eval_scripts_root: Path | None = setting(
        None,
        Setting(
            "the tasks' eval scripts",
            parse=values.local_path,
            metavar="DIR",
            group=_FOLDERS,
            default_text="eval_scripts/",
            in_file=_folder_in_file("../project/eval_scripts"),
        ),
    )
    eval_results_root: Path | None = setting(
        None,
        Setting(
            "the results",
            parse=values.local_path,
            metavar="DIR",
            group=_FOLDERS,
            default_text="eval_results/",
            in_file=_folder_in_file("../project/eval_results"),
        ),
    )
    cache_root: Path | None = setting(
        None,
        Setting(
            "the cached pages",
            parse=values.local_path,
            metavar="DIR",
            group=_FOLDERS,
            default_text="cache/",
            in_file=_folder_in_file("../project/cache"),
        ),
    )
    eval_version: str | None = setting(
        None,
        Setting(
            "the version of the eval scripts, a folder such as 2025_07_14",
            parse=values.non_empty,
            metavar="V",
            default_text="the newest dated one that has the task, else an undated one",
        ),
    )
    task_list: Path | None = setting(
        None,
        Setting(
            "the tasks that count: one id a line, or CSV with a column task_id",
            parse=values.local_path,
            metavar="FILE",
            in_file=InFile('"tasks.txt"', (str,), Path),
        ),
    )
    shard: Shard | None = setting(
        None,
        Setting(
            "judge only part I of N of the answers, such as 3/20. Each other part is judged on "
            "another machine, and mind2web2 import results brings the results together",
            parse=Shard.parse,
            metavar="I/N",
        ),
    )

    llm_provider: str = setting(
        "openai",
        Setting(
            f"{JUDGE_HELP}; replay judges offline, from stored judgments",
            parse=_provider_or_replay,
            choices=lambda: (*provider_names(), REPLAY),
            group=_JUDGE,
            in_file=InFile('"openai"', (str,), _provider_in_file),
            is_common=True,
        ),
    )
    judge_model: str | None = setting(
        None,
        Setting(
            "the model that judges; it replaces any model that a script names",
            parse=values.non_empty,
            metavar="M",
            group=_JUDGE,
            default_text=f"{DEFAULT_JUDGE_MODEL}; with replay, the stored one",
            in_file=InFile('"gpt-5-mini"', (str,)),
            is_common=True,
        ),
    )
    judge_base_url: str | None = setting(
        None,
        Setting(
            "the judge's server, such as an OpenAI-compatible one",
            parse=values.non_empty,
            metavar="URL",
            group=_JUDGE,
            default_text="the provider's own",
            in_file=InFile('"http://localhost:8000/v1"', (str,), _server_in_file),
            is_secret=True,
            is_common=True,
        ),
    )
    judge_extra_body: str | None = setting(
        None,
        Setting(
            f"more parameters for each request, such as '{_EXTRA_BODY_EXAMPLE}' for vLLM. Results "
            "show them, so never put a key here",
            parse=extra_body,
            metavar="JSON",
            group=_JUDGE,
            in_file=InFile("{ top_k = 1 }", (dict, str), _extra_body_in_file),
        ),
    )
    judge_reasoning_effort: str | None = setting(
        None,
        Setting(
            "how much a reasoning model thinks, such as low, medium or high",
            parse=values.non_empty,
            metavar="E",
            group=_JUDGE,
            default_text="the model's own",
            in_file=InFile('"low"', (str,)),
        ),
    )
    judge_temperature: float | None = setting(
        None,
        Setting(
            "how much replies vary, from 0 to 2",
            parse=values.temperature,
            metavar="T",
            group=_JUDGE,
            default_text="0; not sent to reasoning models",
            in_file=InFile("0.5", (int, float)),
        ),
    )
    no_screenshots: bool = flag(
        "show the judge only the text of pages and PDFs, for models without vision",
        group=_JUDGE,
        in_file=InFile("true", (bool,)),
    )
    votes: int = setting(
        DEFAULT_TRIALS,
        Setting(
            "the most votes on a claim for which the script names no number: an odd number. "
            "The judge is asked until the votes decide. Results name the number",
            parse=vote_count,
            metavar="N",
            group=_JUDGE,
            in_file=InFile("1", (int,), vote_count),
        ),
    )
    judgments: Path | None = setting(
        None,
        Setting(
            "with --llm_provider replay, a judgments.sqlite3 or exported .jsonl file to replay",
            parse=values.local_path,
            metavar="FILE",
            group=_JUDGE,
            default_text="those stored beside the results",
            is_common=True,
        ),
    )

    max_concurrent_tasks: int | None = setting(
        None,
        Setting(
            "work on at most N tasks at once",
            parse=values.positive_int,
            metavar="N",
            group=_LIMITS,
            default_text="as many as keep the judge busy, within a quarter of the memory",
            in_file=_COUNT_IN_FILE,
        ),
    )
    max_concurrent_answers: int | None = setting(
        None,
        Setting(
            "work on at most N answers of one task at once",
            parse=values.positive_int,
            metavar="N",
            group=_LIMITS,
            default_text="chosen in the same way as for tasks",
            in_file=_COUNT_IN_FILE,
        ),
    )
    max_webpage_retrieval: int = setting(
        10,
        Setting(
            "capture at most N pages at once, over the whole run",
            parse=values.positive_int,
            metavar="N",
            group=_LIMITS,
            in_file=InFile("10", (int,)),
        ),
    )
    max_llm_requests: int = setting(
        30,
        Setting(
            "send at most N judge requests at once, over the whole run",
            parse=values.positive_int,
            metavar="N",
            group=_LIMITS,
            in_file=InFile("60", (int,)),
            is_common=True,
        ),
    )
    ahead: Literal["values", "gates"] | None = setting(
        None,
        Setting(
            "how far a script runs ahead of missing replies. values: it goes on with placeholders, "
            "which adds about 2% requests; gates: it also assumes that gates pass, which is "
            "fastest and adds about 12%. Scores are the same",
            parse=values.one_of(("values", "gates")),
            metavar="HOW",
            group=_LIMITS,
            default_text="values",
        ),
    )
    answer_timeout: float | None = setting(
        3600.0,
        Setting(
            "seconds that a script may take for one answer. A script that blocks everything "
            "else, as by an endless loop or time.sleep, is stopped after a third of that, at "
            "most 60",
            parse=values.positive_seconds,
            metavar="S",
            group=_LIMITS,
        ),
    )

    estimate: bool = flag(
        "print how many judge requests, tokens and dollars this command would take, and how many "
        "cited pages are not cached. It asks and writes nothing, and needs no key. A script "
        "without earlier results runs once with invented replies",
        group=_COSTS,
        is_common=True,
    )
    max_cost: float | None = setting(
        None,
        Setting(
            "stop asking when the run has cost this many dollars. Finished work is kept. Run "
            "the same command again to spend up to the same amount more (--overwrite starts over)",
            parse=values.positive_dollars,
            metavar="USD",
            group=_COSTS,
            in_file=InFile("20", (int, float)),
            is_common=True,
        ),
    )

    as_of: datetime | Literal["answer"] | None = setting(
        None,
        Setting(
            "the date that scripts see: 2025-03-14 (noon, and the clock stands still), or with a "
            "time, 2025-03-14T09:30. 'answer' takes 'created' from each answer's meta file, or "
            "else the time of its file",
            parse=as_of,
            metavar="DATE",
            group=_SCRIPTS,
            default_text="the real date; with replay, that of the result",
        ),
    )

    no_capture: bool = flag(
        "capture nothing: a page that is not cached counts as unavailable, and claims on it fail",
        group=_PAGES,
        is_common=True,
    )
    headed: bool = flag(
        "capture in a browser that shows its window",
        group=_PAGES,
        in_file=InFile("true", (bool,)),
    )
    cdp_url: str | None = setting(
        None,
        Setting(
            "capture through your own running Chrome, with its logins and solved captchas, such "
            "as http://127.0.0.1:9222",
            parse=values.browser_address,
            metavar="URL",
            group=_PAGES,
        ),
    )
    proxy: str | None = setting(
        None,
        Setting(
            "the proxy for browser and downloads, such as http://USER:PASSWORD@proxy.example:3128",
            parse=str,
            metavar="URL",
            group=_PAGES,
            default_text="HTTP_PROXY and HTTPS_PROXY; hosts in NO_PROXY are reached directly",
            is_secret=True,
        ),
    )
    no_sandbox: bool = flag(
        "start the browser without its sandbox, for a container without user namespaces. Use it "
        "only for pages that you trust",
        group=_PAGES,
        in_file=InFile("true", (bool,)),
    )
    allow_private_network: bool = flag(
        "also allow pages and downloads on private, loopback and link-local addresses",
        group=_PAGES,
        in_file=InFile("true", (bool,)),
        is_common=True,
    )

    engine: str = setting(
        PLAIN,
        Setting(
            "what does the work: this machine (plain), or all nodes of a Ray cluster (ray, which "
            "needs the extra 'ray')",
            parse=values.one_of((PLAIN, RAY)),
            choices=lambda: (PLAIN, RAY),
            group=_MACHINES,
        ),
    )

    overwrite: bool = flag(
        "ask everything again, without reusing results or stored judgments",
        is_common=True,
    )
    dump_cache: bool = flag(
        "when a task is done, rewrite its cache index to list exactly the pages on disk"
    )
    self_debug: bool = flag(
        "print the log of each answer with the extracted values, to debug an eval script",
        is_common=True,
    )

    # Beside the options: the file's prices by model, and which settings command line and file gave.
    prices: Mapping[str, OwnPrice] = field(default_factory=dict)
    given: frozenset[str] = frozenset()
    from_file: frozenset[str] = frozenset()

    @classmethod
    def for_scoring(cls) -> RunSettings:
        """Return the defaults of the commands that score single answers."""
        return cls(max_concurrent_answers=64, answer_timeout=600.0)

    def price_usd(self, input_tokens: int, output_tokens: int) -> float | None:
        """Return dollars for a request to the judge, ``None`` where its price is not known."""
        # Few commands need prices.
        prices = import_module("mind2web2.llm_client.prices")
        usage = import_module("mind2web2.llm_client.chat").Usage(
            input_tokens=input_tokens, output_tokens=output_tokens
        )
        price: float | None = prices.price_usd(usage, self.model, self.prices.get(self.model))
        return price

    def with_text(self, name: str, text: str) -> RunSettings:
        """Return the settings with one as its option's text gives it. Raises ValueError."""
        parse = SETTINGS[name].parse
        assert parse is not None, f"--{name} takes no value"
        changed: Mapping[str, Any] = {name: parse(text)}
        return replace(self, **changed)

    @property
    def paths(self) -> PathConfig:
        """Return the folders that are named, the others under the working directory."""
        return PathConfig(Path()).apply_overrides(
            answers_root=self.answer_folder,
            eval_scripts_root=self.eval_scripts_root,
            eval_results_root=self.eval_results_root,
            cache_root=self.cache_root,
            eval_version=self.eval_version,
        )

    def options(self, *names: str) -> list[str]:
        """Return the options of a suggested command: the folders, or these, as far as given."""
        words = []
        for name in names or FOLDER_NAMES:
            if name in self.given:
                value = getattr(self, name)
                words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
        return words

    @property
    def is_replay(self) -> bool:
        """Return whether stored judgments are replayed."""
        return self.llm_provider == REPLAY

    @property
    def captures_pages(self) -> bool:
        """Return whether pages that are not cached are captured.

        A replay depends on stored pages alone.
        """
        return not self.no_capture and not self.is_replay

    @property
    def model(self) -> str:
        """Return the model that judges."""
        return self.judge_model or DEFAULT_JUDGE_MODEL

    @property
    def names_a_judge(self) -> bool:
        """Return whether command line or file names provider, model or server of the judge."""
        return not (self.given | self.from_file).isdisjoint(JUDGE_NAMES)

    def check(self) -> None:
        """Make sure that each setting has its effect.

        A limit that holds of itself, as ``--max_cost`` does in a replay, is accepted.

        Raises:
            UsageError: says which option to leave out or to add.
        """
        for conflict in conflicts(self):
            raise UsageError(conflict)

    def check_capture(self) -> None:
        """Make sure that each setting of the browser has its effect.

        Raises:
            UsageError: says which option to leave out or to add.
        """
        for conflict in _browser_conflicts(self):
            raise UsageError(conflict)


SETTINGS: Mapping[str, Setting] = declared_in(RunSettings)


# Settings that contradict each other


def conflicts(settings: RunSettings) -> Iterator[str]:
    """Yield what contradicts what, each in one line with the option to leave out or to add."""
    yield from _judge_conflicts(settings)
    yield from _capture_conflicts(settings)


def _given_options(settings: RunSettings, *names: str) -> str:
    return " and ".join(f"--{name}" for name in names if getattr(settings, name))


def _judge_conflicts(settings: RunSettings) -> Iterator[str]:
    if settings.judgments is not None and not settings.is_replay:
        yield "--judgments FILE goes with --llm_provider replay"
    if settings.is_replay and settings.overwrite:
        yield (
            "--overwrite asks everything again, --llm_provider replay asks nothing: leave one "
            "of them out"
        )


def _browser_conflicts(settings: RunSettings) -> Iterator[str]:
    given = _given_options(settings, "proxy", "no_sandbox")
    if settings.cdp_url and given:
        yield (
            "--cdp_url captures in your own Chrome, with its connections and logins: leave "
            f"{given} out"
        )
    if settings.headed and settings.cdp_url:
        yield (
            "--cdp_url captures in your own Chrome, which has a window of its own: leave "
            "--headed out"
        )


def _capture_conflicts(settings: RunSettings) -> Iterator[str]:
    browser = _given_options(settings, "headed", "cdp_url", "no_sandbox")
    if browser and not settings.captures_pages:
        cause = "--no_capture" if settings.no_capture else "--llm_provider replay"
        yield f"{cause} captures nothing: leave {browser} out"
    yield from _browser_conflicts(settings)


FILE_NAME = "mind2web2.toml"
