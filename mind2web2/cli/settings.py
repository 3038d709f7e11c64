"""A command's judge: its servers as options, ``mind2web2.toml``, and the commands that messages suggest."""

from __future__ import annotations

import argparse
import copy
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mind2web2.cli.options import (
    JUDGE_PROVIDERS,
    REPLAY,
    count,
    given_options,
    paths_of,
    positive_int,
    temperature,
)
from mind2web2.errors import UsageError
from mind2web2.utils.json_fields import mapping

if TYPE_CHECKING:
    from mind2web2.judge.batch_jobs import BatchClient, BatchJobs
    from mind2web2.llm_client import LLMClient
    from mind2web2.llm_client.settings import PoolSource

FILE_NAME = "mind2web2.toml"
_JUDGE = ("llm_provider", "judge_model", "judge_base_url", "judge_pool")
# Of these only one counts: the command line's, if it has one.
_SERVERS = {"judge_base_url", "judge_pool"}
_PRICES = {"input": "input_usd", "cached_input": "cached_usd", "output": "output_usd"}
_MAX_PRICE_USD = 1e9
# Of a base URL: user and password, and the query.
_SECRET_PARTS = re.compile(r"(?<=//)[^/@]*@|(?<=\w)\?.*")
_EXAMPLE = '[prices."MODEL"] with input and output in dollars per million tokens'


def add_judge_server_options(group: argparse._ArgumentGroup) -> None:
    """Add where the judge is, and what its requests have beside our own parameters."""
    group.add_argument(
        "--judge_base_url",
        metavar="URL",
        action="given_urls",
        help="an OpenAI-compatible or other server; several make a pool",
    )
    group.add_argument(
        "--judge_pool",
        metavar="FILE",
        type=Path,
        help="a file with servers of one model, one base URL a line, with model=NAME, key=VARIABLE and "
        "weight=NUMBER as needed; each request goes to the server that will answer first. The file is read "
        "again every 15 seconds",
    )
    group.add_argument(
        "--judge_extra_body",
        metavar="JSON",
        type=extra_body,
        help=f"further parameters of each request, such as '{_EXTRA_BODY_EXAMPLE}' of vLLM",
    )


def judge_server(options: argparse.Namespace) -> str | PoolSource | None:
    """Return the base URL or the pool that the options name; ``None`` for the provider's own address.

    Raises:
        UsageError: the pool is none.
    """
    urls = options.judge_base_url or []
    if options.judge_pool is None and len(urls) <= 1:
        return urls[0] if urls else None
    from mind2web2.llm_client.settings import PoolSource

    if options.judge_pool is not None and urls:
        raise UsageError("--judge_pool lists the servers: leave --judge_base_url out")
    if options.llm_provider != "openai":
        raise UsageError(
            "a judge pool has servers of the provider openai: leave --llm_provider "
            f"{options.llm_provider} out"
        )
    source = PoolSource(options.judge_pool, tuple(urls), options.judge_model)
    if source.model is None:
        raise UsageError("which model does the judge pool serve? Name it with --judge_model")
    return source


def judge_client(
    options: argparse.Namespace, batches: BatchJobs | None = None
) -> BatchClient | LLMClient | None:
    """Return the client of the judge that the options name, ``None`` for a replay."""
    if batches is not None:
        from mind2web2.judge.batch_jobs import BatchClient

        return BatchClient(batches)
    if options.llm_provider == REPLAY:
        return None
    from mind2web2.llm_client import LLMClient
    from mind2web2.llm_client.retries import RetryPolicy

    retry = RetryPolicy(outage_wait_s=options.judge_outage_wait)
    return LLMClient(options.llm_provider, is_async=True, base_url=judge_server(options), retry=retry)


def extra_body(text: str) -> str:
    """Return a JSON object of request parameters in its shortest form."""
    try:
        parameters = json.loads(text, parse_constant=_refused_constant)
    except (ValueError, RecursionError):
        parameters = None
    if not isinstance(parameters, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is no JSON object such as " + _EXTRA_BODY_EXAMPLE)
    from mind2web2.llm_client.settings import OWN_PARAMETERS

    if own := sorted(OWN_PARAMETERS & parameters.keys()):
        option = f": use {_OPTIONS[own[0]]}" if own[0] in _OPTIONS else ""
        raise argparse.ArgumentTypeError(f"{own[0]} is not free to choose{option}")
    return json.dumps(parameters, sort_keys=True, separators=(",", ":"))


_EXTRA_BODY_EXAMPLE = '{"chat_template_kwargs": {"enable_thinking": false}}'
_OPTIONS = {
    "model": "--judge_model",
    "temperature": "--judge_temperature",
    "reasoning_effort": "--judge_reasoning_effort",
}


def _refused_constant(name: str) -> float:
    raise ValueError(name)


def apply_settings_file(options: argparse.Namespace) -> None:
    """Fill the options that the command line leaves open, set prices, and print the settings that are used.

    A replay takes its judge from the store of judgments: only prices apply to it. Where the command line
    names another provider than the file, the file's judge settings do not apply.

    Raises:
        UsageError: the file cannot be read, or has an unknown key or an unsuitable value.
    """
    if os.path.lexists(FILE_NAME):
        _apply(_read(Path(FILE_NAME)), options)
    if hasattr(options, "judge_pool") and options.llm_provider != REPLAY:
        server = judge_server(options)
        if not isinstance(server, str | None):
            options.judge_model = server.model


def _apply(settings: Mapping[str, Any], options: argparse.Namespace) -> None:
    applied = _applicable(settings, options)
    for name, value in applied.items():
        setattr(options, name, value)
    options.from_file = frozenset(applied)
    used = [f"{name} {_shown(value)}" for name, value in applied.items()]
    used += _set_prices(settings.get("prices", {}))
    if used:
        print(f"Settings from {FILE_NAME}: {', '.join(used)}.")  # noqa: T201


def _shown(value: object) -> str:
    values = value if isinstance(value, list) else [value]
    return " and ".join(_SECRET_PARTS.sub("", str(each)) for each in values)


def names_a_judge(options: argparse.Namespace) -> bool:
    """Return whether the command line or the file names provider, model or base URL of the judge."""
    named = given_options(options) | getattr(options, "from_file", frozenset())
    return not named.isdisjoint(_JUDGE)


def _applicable(settings: Mapping[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    given = given_options(options)
    provider = getattr(options, "llm_provider", None)
    if provider == REPLAY:
        return {}
    if _SERVERS & given:
        given |= _SERVERS
    is_other_judge = "llm_provider" in given and provider != settings.get("llm_provider", "openai")
    return {
        name: value
        for name, value in settings.items()
        if name in _SETTINGS
        and hasattr(options, name)
        and name not in given
        and not (is_other_judge and name.startswith("judge_"))
        and not (name == "max_llm_requests" and getattr(options, "batch", False))
    }


def _read(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"cannot read {FILE_NAME}: {reason}") from error
    _check_keys(content, [*_SETTINGS, "prices"], FILE_NAME)
    return {name: value if name == "prices" else _checked(name, value) for name, value in content.items()}


def _checked(name: str, value: object) -> Any:
    kinds, example, check = _SETTINGS[name]
    # To Python, True is an int.
    if not isinstance(value, kinds) or isinstance(value, bool) or not str(value).strip():
        raise UsageError(f"{FILE_NAME}: {name} is {value!r}: write for example {name} = {example}")
    try:
        return check(value if isinstance(value, dict | list) else str(value))
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"{FILE_NAME}: {name}: {error}") from error


def _set_prices(prices: object) -> list[str]:
    from mind2web2.llm_client.prices import OwnPrice, set_own_prices

    if not isinstance(prices, dict) or not all(isinstance(price, dict) for price in prices.values()):
        raise UsageError(f"{FILE_NAME}: prices: write {_EXAMPLE}")
    own = {}
    for model, price in prices.items():
        where = f"{FILE_NAME}: prices of {model}"
        if any(isinstance(amount, dict) for amount in price.values()):
            raise UsageError(
                f'{where}: write a name with a dot in quotes: [prices."{_dotted(model, price)}"]'
            )
        _check_keys(price, _PRICES, where)
        if not {"input", "output"} <= price.keys() or not all(map(_is_price, price.values())):
            raise UsageError(f"{where}: write {_EXAMPLE}")
        own[model] = OwnPrice(**{_PRICES[kind]: float(amount) for kind, amount in price.items()})
    set_own_prices(own)
    return [f"prices of {model}" for model in own]


def _dotted(name: str, table: Mapping[str, Any]) -> str:
    """Return the model's name, which TOML has split at its dots."""
    part = next((part for part, inner in table.items() if isinstance(inner, dict)), None)
    return name if part is None else _dotted(f"{name}.{part}", table[part])


def _is_price(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MAX_PRICE_USD


def _check_keys(found: Iterable[str], known: Iterable[str], where: str) -> None:
    import difflib

    names = list(known)
    for name in found:
        if name in names:
            continue
        nearest = difflib.get_close_matches(name.replace("-", "_"), names, n=1)
        if name == "no_screenshots":
            cure = "write max_images = 0"
        elif re.search("key|secret|token$", name, re.IGNORECASE):
            cure = "API keys come from environment variables, such as OPENAI_API_KEY"
        else:
            cure = f"did you mean {nearest[0]}?" if nearest else f"known are {', '.join(names)}"
        raise UsageError(f"{where}: unknown key {name}: {cure}")


def _provider(text: str) -> str:
    if text not in JUDGE_PROVIDERS:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(JUDGE_PROVIDERS)}")
    return text


def _servers(found: str | list[object]) -> list[str]:
    from mind2web2.llm_client.settings import check_address

    urls = [str(url) for url in (found if isinstance(found, list) else [found])]
    if not urls:
        raise argparse.ArgumentTypeError("the list is empty")
    for url in urls:
        check_address(url, f"{FILE_NAME}: judge_base_url")
    return urls


def _extra_body(found: str | dict[str, object]) -> str:
    return extra_body(found if isinstance(found, str) else json.dumps(found, default=str))


# By the option's name: the types that the file may have, an example, and the option's own check.
_SETTINGS: dict[str, tuple[type | tuple[type, ...], str, Callable[[Any], Any]]] = {
    "llm_provider": (str, '"openai"', _provider),
    "judge_model": (str, '"gpt-5-mini"', str),
    "judge_base_url": ((str, list), '"http://localhost:8000/v1"', _servers),
    "judge_pool": (str, '"judges.txt"', Path),
    "judge_extra_body": ((dict, str), "{ top_k = 1 }", _extra_body),
    "judge_reasoning_effort": (str, '"low"', str),
    "judge_temperature": ((int, float), "0.5", temperature),
    "max_images": (int, "1", count),
    "max_llm_requests": (int, "60", positive_int),
    "max_concurrent_tasks": (int, "3", positive_int),
    "max_concurrent_answers": (int, "3", positive_int),
    "max_webpage_retrieval": (int, "10", positive_int),
}


_FOLDERS = {
    "cache": ("answer_folder", "cache_root"),
    "check-judge": ("eval_results_root",),
    "evaluate": ("answer_folder", "eval_scripts_root", "eval_results_root", "cache_root", "eval_version"),
    "judgments": ("eval_results_root",),
    "metrics": ("answer_folder", "eval_scripts_root", "eval_results_root", "cache_root", "eval_version"),
    "show": ("eval_results_root", "cache_root"),
}
_USER_INFO = re.compile(r"(?<=//)[^/]*@|^[^/]*@")


def suggested_command(options: argparse.Namespace, command: str, *words: str) -> str:
    """Return a command to be copied into the shell that the present one was started from.

    Args:
        options: of the present command; its folders are named again.
    """
    given = vars(options)
    folders = [(name, given.get(name)) for name in _FOLDERS[command]]
    named = [word for name, value in folders if value is not None for word in (f"--{name}", str(value))]
    return shlex.join([*_program(), command, *words, *named])


def checked_under(options: argparse.Namespace) -> argparse.Namespace:
    """Return the options with the folder of results in which checks of judges are kept.

    A shard and ``rejudge`` write to folders of their own, where no other run looks for a check.
    """
    own = copy.copy(options)
    own.eval_results_root = None if options.shard else options.eval_results_root
    own.eval_results_root = getattr(options, "counted_root", own.eval_results_root)
    return own


def suggested_check(options: argparse.Namespace) -> str:
    """Return the command that checks the judge of an evaluation with these options."""
    names = ("llm_provider", *(name for name in vars(options) if name.startswith("judge_")))
    given = given_options(options)
    words = []
    for name in (name for name in names if name in given and name != "judge_outage_wait"):
        value = getattr(options, name)
        for each in value if isinstance(value, list) else [] if value is None else [value]:
            words += [f"--{name}", str(each)]
    if options.max_images is not None and "max_images" in given:
        words += ["--max_images", str(options.max_images)] if options.max_images else ["--no_screenshots"]
    return suggested_command(options, "check-judge", *words)


def suggested_evaluation(
    options: argparse.Namespace, agent_name: str, result: Mapping[str, Any] | None, *words: str
) -> str:
    """Return the command that evaluates the agent with the judge and options of one of its results."""
    return suggested_command(options, "evaluate", agent_name, *words, *evaluation_options(result))


def suggested_forgetting(options: argparse.Namespace, agent_name: str, task_ids: Iterable[str]) -> str:
    """Return which folders hold results of tasks without answers, with the command that deletes them."""
    root = paths_of(options).eval_results_root / agent_name
    folders = ", ".join(str(root / task_id) for task_id in task_ids)
    words = [word for task_id in task_ids for word in ("--forget", task_id)]
    command = suggested_command(options, "metrics", agent_name, *words)
    return f"tasks without answers, whose stored results still count: {folders}; to delete them: {command}"


def caching_command(agent_name: str, options: argparse.Namespace, *more: str) -> str:
    """Return the caching command that fits a run with these options."""
    given = vars(options)
    words = [agent_name, *more]
    for task_id in given.get("task_ids") or ():
        words += ["--task_id", task_id]
    if given.get("cdp_url") is not None:
        words += ["--cdp_url", given["cdp_url"]]
    if given.get("storage_state") is not None:
        words += ["--storage_state", str(given["storage_state"])]
    if given.get("proxy") is not None:
        words += ["--proxy", _USER_INFO.sub("USER:PASSWORD@", given["proxy"])]
    if given.get("archive_url") is not None:
        words += ["--archive_url", given["archive_url"]]
    words += [f"--{name}" for name in ("archive", "allow_private_network", "no_llm") if given.get(name)]
    return suggested_command(options, "cache", *words)


def evaluation_options(result: Mapping[str, Any] | None) -> list[str]:
    """Return the options of ``evaluate`` with which a result was made, as far as its provenance tells."""
    made_from = mapping(None if result is None else result.get("provenance"))
    judge = mapping(made_from.get("judge"))
    if not judge:
        return []
    words = [word for name, value in _judge_options(judge) for word in (f"--{name}", value)]
    replayed_from = mapping(made_from.get("replayed_from"))
    if replayed_from.get("path"):
        words += ["--judgments", str(replayed_from["path"])]
    if judge.get("max_images") == 0:
        words.append("--no_screenshots")
    inputs = mapping(made_from.get("inputs"))
    words += [word for name in mapping(inputs.get("variables")) for word in ("--script_env", str(name))]
    if inputs.get("as_of") and not replayed_from:
        words += ["--as_of", str(inputs["as_of"])]
    if made_from.get("with_private_network"):
        words.append("--allow_private_network")
    if not made_from.get("with_captures") and judge.get("provider") != REPLAY:
        words.append("--no_capture")
    return words


def _judge_options(judge: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    provider = str(judge.get("provider"))
    if provider not in ("openai", "client"):
        yield "llm_provider", provider
    yield "judge_model", str(judge.get("model"))
    # "openai http://127.0.0.1:8000/v1": the provider's name and the server's address.
    endpoint = str(judge.get("endpoint"))
    server = endpoint.rpartition(" ")[2]
    if provider in ("openai", "anthropic", "gemini") and "://" in server:
        from mind2web2.llm_client.settings import endpoint_of

        if endpoint != endpoint_of(provider):
            yield "judge_base_url", server
    if server == "pool":
        yield "judge_pool", "FILE"
    if judge.get("extra_body"):
        yield "judge_extra_body", str(judge["extra_body"])
    for name in ("reasoning_effort", "temperature"):
        if judge.get(name) is not None:
            yield f"judge_{name}", str(judge[name])
    if judge.get("max_images"):
        yield "max_images", str(judge["max_images"])


def _program() -> list[str]:
    started_as = Path(sys.argv[0]).name
    if os.environ.get("UV"):  # which `uv run` sets
        return ["uv", "run", "mind2web2"]
    if started_as == "__main__.py" or (started_as.endswith(".py") and shutil.which("mind2web2") is None):
        return ["python", "-m", "mind2web2"]
    return ["mind2web2"]
