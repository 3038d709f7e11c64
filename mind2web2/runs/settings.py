# ruff: noqa: RUF009 (the calls in the class return fields)
"""The settings of a run: each is declared once, with its type, default, option, help and conflicts.

The command line, ``mind2web2.toml``, ``serve``, the nodes of a cluster and ``docs/options.md`` read
these declarations. A new option is a new field of ``RunSettings``. Nothing here loads much:
``--help`` needs it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from mind2web2.errors import UsageError
from mind2web2.llm_client.settings import (
    DEFAULT_JUDGE_MODEL,
    OWN_PARAMETERS,
    Servers,
    check_address,
    listed_servers,
)
from mind2web2.results.shards import Shard
from mind2web2.rubric.vote_rule import ALWAYS, vote_rule
from mind2web2.runs.setting import (
    Flag,
    InFile,
    PluginSettings,
    Setting,
    declared_in,
    flag,
    plugin_settings,
    setting,
)
from mind2web2.utils import values
from mind2web2.utils.entry_points import hook_names, removed_plugin
from mind2web2.utils.json_fields import JsonObject
from mind2web2.utils.moments import parse_moment

if TYPE_CHECKING:
    from mind2web2.llm_client.own_price import OwnPrice

_Kind = TypeVar("_Kind")

JUDGE_PROVIDERS = ("openai", "azure_openai")
REPLAY = "replay"
PLAIN = "plain"
# The settings that name the judge; of the servers, only the command line's count if it has one.
JUDGE_NAMES = (
    "llm_provider",
    "judge_model",
    "judge_base_url",
    "judge_pool",
)
SERVER_NAMES = ("judge_base_url", "judge_pool")
# Everything that says how the judge is asked.
JUDGE_SETTINGS = (
    "llm_provider",
    "judge_model",
    "judge_base_url",
    "judge_pool",
    "judge_alias",
    "judge_extra_body",
    "judge_reasoning_effort",
    "judge_temperature",
    "max_images",
    "judge_outage_wait",
)
FOLDER_NAMES = ("answer_folder", "eval_scripts_root", "eval_results_root", "cache_root")

JUDGE_HELP = (
    "the provider of the judge. openai needs OPENAI_API_KEY and also reads OPENAI_BASE_URL; "
    "azure_openai needs AZURE_OPENAI_API_KEY, AZURE_OPENAI_ENDPOINT_URL and "
    "AZURE_OPENAI_API_VERSION; `mind2web2 plugins` names the keys of the others"
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
        raise ValueError(f"{text!r} is no JSON object such as {_EXTRA_BODY_EXAMPLE}")
    if own := sorted(OWN_PARAMETERS & parameters.keys()):
        option = f": use {_PARAMETER_OPTIONS[own[0]]}" if own[0] in _PARAMETER_OPTIONS else ""
        raise ValueError(f"{own[0]} is not free to choose{option}")
    return json.dumps(parameters, sort_keys=True, separators=(",", ":"))


def _refused_constant(name: str) -> float:
    raise ValueError(name)


def _extra_body_in_file(found: str | JsonObject) -> str:
    return extra_body(found if isinstance(found, str) else json.dumps(found, default=str))


def _servers_in_file(found: str | list[object]) -> tuple[str, ...]:
    urls = tuple(str(url) for url in (found if isinstance(found, list) else [found]))
    if not urls:
        raise ValueError("the list is empty")
    for url in urls:
        check_address(url, "mind2web2.toml: judge_base_url")
    return urls


def model_alias(text: str) -> str:
    """Return two names of one model as they are given.

    Raises:
        ValueError: they are not two.
    """
    if not all(_both_names(text)):
        raise ValueError(f"{text!r} does not name two models: write NAME=NAME")
    return text


def _both_names(alias: str) -> tuple[str, str]:
    one, _, other = alias.partition("=")
    return one.strip(), other.strip()


def _aliases_in_file(found: str | list[object]) -> tuple[str, ...]:
    given = [found] if isinstance(found, str) else found
    return tuple(model_alias(str(alias)) for alias in given)


def provider_names() -> tuple[str, ...]:
    """Return the names of all providers of judges."""
    return (*JUDGE_PROVIDERS, *hook_names("judges"))


def engine_names() -> tuple[str, ...]:
    """Return the names of all engines."""
    return tuple(dict.fromkeys((PLAIN, *hook_names("engines"))))


def provider(text: str) -> str:
    """Return the name of a provider of judges."""
    _check_is_there(text)
    return values.one_of(provider_names())(text)


def _provider_or_replay(text: str) -> str:
    return text if text == REPLAY else provider(text)


def _check_is_there(value: str) -> None:
    """Raise ``ValueError`` for a value that needs a plugin which is not installed."""
    if plugin := removed_plugin(value):
        raise ValueError(f"{value} needs the plugin {plugin}")


def _provider_in_file(text: str) -> str:
    _check_is_there(text)
    if text not in provider_names():
        raise ValueError(f"{text!r} is none of {', '.join(provider_names())}")
    return text


def _engine(text: str) -> str:
    _check_is_there(text)
    return values.one_of(engine_names())(text)


def _folder_in_file(example: str) -> InFile:
    return InFile(f'"{example}"', (str,))


_FOLDERS = "folders, or URLs such as s3://bucket/prefix"
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
    answer_folder: Path | str | None = setting(
        None,
        Setting(
            "the agents' answers",
            parse=values.root,
            metavar="DIR",
            group=_FOLDERS,
            default_text="answers/",
            in_file=_folder_in_file("../project/answers"),
            see="scale.md#roots-in-a-bucket",
        ),
    )
    eval_scripts_root: Path | str | None = setting(
        None,
        Setting(
            "the tasks' eval scripts",
            parse=values.root,
            metavar="DIR",
            group=_FOLDERS,
            default_text="eval_scripts/",
            in_file=_folder_in_file("../project/eval_scripts"),
        ),
    )
    eval_results_root: Path | str | None = setting(
        None,
        Setting(
            "the results",
            parse=values.root,
            metavar="DIR",
            group=_FOLDERS,
            default_text="eval_results/",
            in_file=_folder_in_file("../project/eval_results"),
        ),
    )
    cache_root: Path | str | None = setting(
        None,
        Setting(
            "the cached pages",
            parse=values.root,
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
            "another machine, and mind2web2 merge brings the results together",
            parse=Shard.parse,
            metavar="I/N",
            see="scale.md#several-machines",
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
            see="#judges",
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
    judge_base_url: tuple[str, ...] = setting(
        (),
        Setting(
            "the judge's server, such as an OpenAI-compatible one; repeat the option for a pool "
            "of servers",
            parse=values.non_empty,
            metavar="URL",
            group=_JUDGE,
            is_repeated=True,
            is_distinct=True,
            default_text="the provider's own",
            in_file=InFile('"http://localhost:8000/v1"', (str, list), _servers_in_file),
            is_secret=True,
            see="#several-servers",
            is_common=True,
        ),
    )
    judge_pool: Path | None = setting(
        None,
        Setting(
            "a file with the servers of one model: one base URL a line, with model=NAME, "
            "key=VARIABLE and weight=NUMBER as needed. Each request goes to the server that is "
            "likely to answer first. The file is read again every 15 seconds",
            parse=values.local_path,
            metavar="FILE",
            group=_JUDGE,
            in_file=InFile('"judges.txt"', (str,), Path),
            see="#several-servers",
        ),
    )
    judge_alias: tuple[str, ...] = setting(
        (),
        Setting(
            "treat two names as the same model; otherwise it is an error if a server of a pool "
            "reports another model name",
            parse=model_alias,
            metavar="NAME=NAME",
            group=_JUDGE,
            is_repeated=True,
            in_file=InFile('["qwen3-vl=Qwen/Qwen3-VL-32B"]', (str, list), _aliases_in_file),
            has_option=False,
            see="#several-servers",
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
    max_images: int | None = setting(
        None,
        Setting(
            "show the judge only the first N images of a page; the result notes which are left out",
            parse=values.image_count,
            metavar="N",
            group=_JUDGE,
            default_text="as many as the server accepts",
            flags={
                "--no_screenshots": Flag(
                    0,
                    "show the judge only the text of pages and PDFs, for models without vision",
                )
            },
            in_file=InFile("1", (int,), values.count),
        ),
    )
    votes: str = setting(
        ALWAYS,
        Setting(
            "how many votes the judge casts on a claim for which the script names no number. "
            "always: two, and a third if they differ, as in the benchmark; N: at most N, an odd "
            "number. Results name the rule",
            parse=vote_rule,
            metavar="always|N",
            group=_JUDGE,
            in_file=InFile("1", (str, int), vote_rule),
            see="cost-and-speed.md#fewer-votes",
        ),
    )
    judge_outage_wait: float = setting(
        120.0,
        Setting(
            "seconds to wait if the judge becomes unreachable during the run",
            parse=values.positive_seconds,
            metavar="S",
            group=_JUDGE,
            in_file=InFile("600", (int, float)),
            has_option=False,
        ),
    )
    judgments: str | None = setting(
        None,
        Setting(
            "with --llm_provider replay, a judgments.sqlite3 or exported .jsonl file to replay; "
            "otherwise postgresql://HOST/DATABASE, where several machines share judgments",
            parse=values.file_or_database,
            metavar="FILE_OR_URL",
            group=_JUDGE,
            default_text="those stored beside the results",
            see="scale.md#several-machines",
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
            see="cost-and-speed.md#time",
        ),
    )
    page_memory: int = setting(
        256 * 1024**2,
        Setting(
            "memory for prepared pages, such as 512M or 2G; the least recently used pages are "
            "dropped, and prepared again when a claim needs them",
            parse=values.byte_count,
            metavar="SIZE",
            group=_LIMITS,
            in_file=InFile('"512M"', (str,)),
            has_option=False,
            default_text="256M",
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
            "stop asking when the run has cost this many dollars. Everything done is kept, and "
            "the same command continues with as much again (with --overwrite it starts over)",
            parse=values.positive_dollars,
            metavar="USD",
            group=_COSTS,
            in_file=InFile("20", (int, float)),
            is_common=True,
        ),
    )

    script_memory: int | None = setting(
        None,
        Setting(
            "memory for each script's process; if a script takes more, it is stopped and its "
            "answer gets no result",
            parse=values.byte_count,
            metavar="SIZE",
            group=_SCRIPTS,
            in_file=InFile('"2G"', (str,)),
            has_option=False,
            default_text="1G, on Linux",
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
    script_env: tuple[str, ...] = setting(
        (),
        Setting(
            "pass this environment variable to scripts; may be repeated. Scripts always get "
            "those that any program needs (PATH, HOME, LANG and the like, but not a proxy with a "
            "password)",
            parse=str,
            metavar="NAME",
            group=_SCRIPTS,
            is_repeated=True,
        ),
    )

    no_capture: bool = flag(
        "capture nothing, and copy nothing from other agents: a page that is not cached counts "
        "as unavailable, and claims on it fail",
        group=_PAGES,
        is_common=True,
    )
    headed: bool = flag("capture in a browser that shows its window", group=_PAGES)
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
            see="pages.md#behind-a-companys-proxy",
        ),
    )
    storage_state: Path | None = setting(
        None,
        Setting(
            "a login for all captured pages: its cookies and local storage, as Playwright saves "
            "them",
            parse=values.local_path,
            metavar="FILE",
            group=_PAGES,
        ),
    )
    time_zone: str | None = setting(
        None,
        Setting(
            "the time zone of the capturing browser, such as Europe/Berlin",
            parse=values.time_zone,
            metavar="ZONE",
            group=_PAGES,
            default_text="UTC",
        ),
    )
    no_sandbox: bool = flag(
        "start the browser without its sandbox, for a container without user namespaces. Use it "
        "only for pages that you trust",
        group=_PAGES,
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
            "what does the work: this machine (plain), or the engine of a plugin",
            parse=_engine,
            choices=engine_names,
            group=_MACHINES,
            see="scale.md",
        ),
    )

    barred: Path | None = setting(
        None,
        Setting(
            "a file of hosts, addresses and titles. An answer that relies on one is flagged; its "
            "score stays the same",
            parse=values.local_path,
            metavar="FILE",
            default_text="the benchmark's own dataset, code, paper and leaderboard",
            see="trust.md#barred-sources",
        ),
    )
    no_barred: bool = flag("do not flag answers that rely on barred sources")
    overwrite: bool = flag(
        "ask everything again, without reusing results or stored judgments",
        is_common=True,
    )
    keep_apart: bool = setting(
        False,
        Setting(
            "do not reuse judgments and pages of other agents",
            in_file=InFile("true", (bool,)),
            has_option=False,
        ),
    )
    dump_cache: bool = flag(
        "when a task is done, rewrite its cache index to list exactly the pages on disk"
    )
    strict: bool = flag(
        "give no result if a script leaves a leaf unjudged, or passes an unknown keyword to "
        "initialize or add_* (default: a warning, as published scripts do both)"
    )
    quiet: bool = flag("print neither a line for each answer nor the judge's use", is_common=True)
    self_debug: bool = flag(
        "print the log of each answer with the extracted values, to debug an eval script",
        is_common=True,
    )

    # Beside the options: the file's prices by model, and which settings command line and file gave.
    prices: Mapping[str, OwnPrice] = field(default_factory=dict)
    given: frozenset[str] = frozenset()
    from_file: frozenset[str] = frozenset()
    # The settings of plugins: an object of a plugin's class if command line or file gave one of
    # them.
    of_plugins: tuple[PluginSettings, ...] = ()

    def of(self, kind: type[_Kind]) -> _Kind:
        """Return the settings that a plugin declares in a class of its own."""
        found = (each for each in self.of_plugins if isinstance(each, kind))
        return next(found, None) or kind()

    def value(self, name: str) -> object:
        """Return the value of a setting, also of one that a plugin declares."""
        if name in SETTINGS:
            return getattr(self, name)
        return getattr(self.of(_owner(name)), name)

    def with_values(self, values: Mapping[str, object]) -> RunSettings:
        """Return the settings with other values, also for those that plugins declare."""
        own = {name: value for name, value in values.items() if name in SETTINGS}
        settings = replace(self, **own)  # type: ignore[arg-type]  # each value was parsed by its declaration
        for name in values.keys() - own.keys():
            changed = replace(settings.of(_owner(name)), **{name: values[name]})
            others = [each for each in settings.of_plugins if type(each) is not type(changed)]
            settings = replace(settings, of_plugins=(*others, changed))
        return settings

    @property
    def is_replay(self) -> bool:
        """Return whether stored judgments are replayed."""
        return self.llm_provider == REPLAY

    @property
    def is_shared(self) -> bool:
        """Return whether the judgments are in a database that several machines share."""
        return self.judgments is not None and "://" in self.judgments

    @property
    def delivery(self) -> str | None:
        """Return the setting by which a plugin sends the judge's questions in its own way."""
        declared = all_settings()
        names = [name for name in hook_names("deliveries") if name in declared]
        return next((name for name in names if self.value(name)), None)

    @property
    def goes_ahead(self) -> Literal["values", "gates"]:
        """Return how far scripts go on while replies are missing."""
        return self.ahead or ("values" if self.delivery is None else "gates")

    @property
    def captures_pages(self) -> bool:
        """Return whether pages that are not cached are captured.

        A replay depends on stored pages alone.
        """
        return not self.no_capture and not self.is_replay

    @property
    def model(self) -> str:
        """Return the model that judges, of two judges the strong one."""
        return self.named_model or DEFAULT_JUDGE_MODEL

    @property
    def named_model(self) -> str | None:
        """Return ``model`` where a setting names it."""
        models = (each.judge_model for each in self.of_plugins)
        return next(filter(None, models), self.judge_model)

    @property
    def other_judge_names(self) -> list[str]:
        """Return the settings of plugins that name the judge here, in place of ``judge_model``."""
        return [name for name in names_of_judge() if self.value(name) is not None]

    @property
    def names_a_judge(self) -> bool:
        """Return whether command line or file names provider, model or server of the judge."""
        names = {*JUDGE_NAMES, *names_of_judge()}
        return not (self.given | self.from_file).isdisjoint(names)

    @property
    def names_a_pool(self) -> bool:
        """Return whether the judge has several servers."""
        return self.judge_pool is not None or len(self.judge_base_url) > 1

    def judge_server(self) -> str | Servers | None:
        """Return the base URL or the pool of the judge; ``None`` for the provider's own address.

        Raises:
            UsageError: the pool is none.
        """
        urls = self.judge_base_url
        if not self.names_a_pool:
            return urls[0] if urls else None
        if self.judge_pool is not None and urls:
            raise UsageError("--judge_pool lists the servers: leave --judge_base_url out")
        if self.llm_provider != "openai":
            raise UsageError(
                "a judge pool has servers of the provider openai: leave --llm_provider "
                f"{self.llm_provider} out"
            )
        aliases = tuple(_both_names(alias) for alias in self.judge_alias)
        source = listed_servers(self.judge_pool, urls, self.named_model, aliases)
        if source.model is None:
            raise UsageError("which model does the judge pool serve? Name it with --judge_model")
        return source

    def with_pool_model(self) -> RunSettings:
        """Return the settings with the model that the judge pool serves, if its file names it."""
        server = None if self.is_replay else self.judge_server()
        return replace(self, judge_model=server.model) if isinstance(server, Servers) else self

    def check(self) -> None:
        """Make sure that each setting has its effect.

        A limit that holds of itself, as ``--max_cost`` does in a replay, is accepted.

        Raises:
            UsageError: says which option to leave out or to add.
        """
        for conflict in conflicts(self):
            raise UsageError(conflict)

    def check_capture(self) -> None:
        """Make sure that each setting of machines and browser has its effect.

        Raises:
            UsageError: says which option to leave out or to add.
        """
        for conflict in (*_plugin_conflicts(self), *_browser_conflicts(self)):
            raise UsageError(conflict)


SETTINGS: Mapping[str, Setting] = declared_in(RunSettings)


def all_settings() -> dict[str, Setting]:
    """Return the settings of the core and of plugins, by their names."""
    declared = dict(SETTINGS)
    for kind in plugin_settings():
        declared |= declared_in(kind)
    return declared


def names_of_judge() -> list[str]:
    """Return the settings of plugins that name the judge in place of ``judge_model``."""
    return [name for name, each in all_settings().items() if each.names_judge]


def _owner(name: str) -> type[Any]:
    return next(kind for kind in plugin_settings() if name in declared_in(kind))


def judging_settings() -> list[str]:
    """Return the names of the settings of judging.

    The settings say who judges, at which pace and cost, and how scripts run.
    """
    groups = (_JUDGE, _LIMITS, _COSTS, _SCRIPTS)
    return [name for name, each in all_settings().items() if each.group in groups]


# Settings that contradict each other


def conflicts(settings: RunSettings) -> Iterator[str]:
    """Yield what contradicts what, each in one line with the option to leave out or to add."""
    yield from _judge_conflicts(settings)
    yield from _capture_conflicts(settings)
    yield from _script_conflicts(settings)
    if settings.barred is not None and settings.no_barred:
        yield "--no_barred flags no answer: leave --barred out"
    yield from _plugin_conflicts(settings)


def _plugin_conflicts(settings: RunSettings) -> Iterator[str]:
    for kind in plugin_settings():
        yield from settings.of(kind).conflicts(settings)


def _given_options(settings: RunSettings, *names: str) -> str:
    return " and ".join(f"--{name}" for name in names if getattr(settings, name))


def _judge_conflicts(settings: RunSettings) -> Iterator[str]:
    if settings.judgments is not None and not settings.is_replay and not settings.is_shared:
        yield (
            "--judgments FILE goes with --llm_provider replay; a judge shares "
            "postgresql://HOST/DATABASE"
        )
    if settings.is_shared and settings.is_replay:
        yield (
            "a replay reads a file: run `mind2web2 judgments import AGENT URL`, and leave "
            "--judgments out"
        )
    if settings.is_replay and settings.overwrite:
        yield (
            "--overwrite asks everything again, --llm_provider replay asks nothing: leave one "
            "of them out"
        )
    if settings.is_replay and settings.names_a_pool:
        yield "a replay asks no server: leave the judge pool out"


def _browser_conflicts(settings: RunSettings) -> Iterator[str]:
    given = _given_options(settings, "proxy", "storage_state", "time_zone", "no_sandbox")
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
    browser = _given_options(
        settings, "headed", "cdp_url", "storage_state", "time_zone", "no_sandbox"
    )
    if browser and not settings.captures_pages:
        cause = "--no_capture" if settings.no_capture else "--llm_provider replay"
        yield f"{cause} captures nothing: leave {browser} out"
    yield from _browser_conflicts(settings)


def _script_conflicts(settings: RunSettings) -> Iterator[str]:
    for name in settings.script_env:
        if name not in os.environ:
            yield (
                f"--script_env takes the name of a variable that is set, not {name!r}: set it, or "
                "leave --script_env out"
            )
