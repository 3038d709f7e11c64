"""How options are spelled and read, and the commands that messages suggest with them."""

from __future__ import annotations

import argparse
import difflib
import json
import math
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn
from urllib.parse import urlsplit

from mind2web2.errors import UsageError

if TYPE_CHECKING:
    from mind2web2.capture.settings import NetworkSettings
    from mind2web2.utils.path_config import PathConfig

Handler = Callable[[argparse.Namespace], int]
Subcommands = Any  # argparse keeps the type of its subparsers' action to itself

JUDGE_PROVIDERS = ("openai", "azure_openai", "bedrock_anthropic")
JUDGE_PROVIDERS_HELP = (
    "who judges (default: openai). openai needs OPENAI_API_KEY (and takes OPENAI_BASE_URL); "
    "azure_openai AZURE_OPENAI_API_KEY, AZURE_OPENAI_ENDPOINT_URL, AZURE_OPENAI_API_VERSION; "
    "bedrock_anthropic AWS_ACCESS_KEY, AWS_SECRET_KEY, AWS_REGION and the extra 'bedrock'"
)

_BYTES_A_UNIT = {"M": 1024**2, "G": 1024**3}
_LONG_OPTION = re.compile(r"--[a-z][a-z_-]*(?=$|=)")


class CommandParser(argparse.ArgumentParser):
    """A parser that takes ``--like-this`` for ``--like_this``, and each single-valued option once.

    The names of the options that were given are in ``given`` of the namespace.
    """

    def __init__(self, **keywords: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **keywords)
        # Names of tasks and answers may begin with a dash: only options that exist are taken for options.
        self._negative_number_matcher = re.compile("-[^-]")
        self.register("action", None, _StoreOnce)
        self.register("action", "store", _StoreOnce)

    def error(self, message: str) -> NoReturn:
        """Print one line without the usage, which would hide it, and exit."""
        self.exit(2, f"{self.prog}: error: {message}; see {self.prog} --help\n")

    def parse_known_args(  # type: ignore[override]  # typeshed's overloads differ in the namespace only
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse with underscores in the names of options, and refuse unknown ones under one's own usage."""
        given = sys.argv[1:] if args is None else args
        known, unknown = super().parse_known_args([_with_underscores(word) for word in given], namespace)
        if unknown:
            self.error(
                f"unrecognized arguments: {' '.join(getattr(word, 'typed', word) for word in unknown)}"
            )
        return known, unknown


class _StoreOnce(argparse.Action):
    """Store a value, of an option without one its constant; a second for the same option is an error."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if option_string is not None:
            given = given_options(namespace)
            if self.dest in given:
                parser.error(f"--{self.dest} was given twice")
            namespace.given = given | {self.dest}
        setattr(namespace, self.dest, self.const if self.nargs == 0 else values)


class _OptionWord(str):
    """An option as we spell it, which remembers how it was typed."""

    __slots__ = ("typed",)
    typed: str


def given_options(options: argparse.Namespace) -> frozenset[str]:
    """Return the names of the single-valued options on the command line."""
    given: frozenset[str] = getattr(options, "given", frozenset())
    return given


def _with_underscores(word: str) -> str:
    name = _LONG_OPTION.match(word)
    if name is None or isinstance(word, _OptionWord):
        return word
    ours = _OptionWord("--" + name[0][2:].replace("-", "_") + word[name.end() :])
    ours.typed = word
    return ours


def positive_int(text: str) -> int:
    """Return a whole number of at least 1."""
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def count(text: str) -> int:
    """Return a whole number, 0 included."""
    if not text.isascii() or not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def image_count(text: str) -> int:
    """Return how many images to show, at least one."""
    if text == "0":
        raise argparse.ArgumentTypeError("to show no images, give --no_screenshots instead")
    return positive_int(text)


def positive_seconds(text: str) -> float:
    """Return a positive number of seconds."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return seconds


def positive_dollars(text: str) -> float:
    """Return a positive number of dollars."""
    try:
        dollars = float(text.removeprefix("$"))
    except ValueError:
        dollars = math.nan
    if not 0 < dollars < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of dollars")
    return dollars


def byte_count(text: str) -> int:
    """Return an amount of memory in bytes, given in megabytes or gigabytes: ``512M``, ``1.5G``."""
    found = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]+)?) ?([MG])(?:i?B)?", text.strip(), re.IGNORECASE)
    size = round(float(found[1]) * _BYTES_A_UNIT[found[2].upper()]) if found else 0
    if size < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount of memory such as 512M or 2G")
    return size


def as_of(text: str) -> datetime | Literal["answer"]:
    """Return the moment that scripts take for now, or that each answer names its own."""
    from mind2web2.scripts.clock import parsed_moment

    if text == "answer":
        return "answer"
    try:
        return parsed_moment(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a date such as 2025-03-14 nor 'answer'"
        ) from None


def browser_address(text: str) -> str:
    """Return the address of a running browser."""
    return _address(text, ("http", "https", "ws", "wss"), "http://127.0.0.1:9222")


def web_address(text: str) -> str:
    """Return the address of a web server."""
    return _address(text, ("http", "https"), "https://archive.example")


def _address(text: str, schemes: tuple[str, ...], example: str) -> str:
    try:
        address = urlsplit(text)
        is_address = address.scheme in schemes and bool(address.hostname) and address.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise argparse.ArgumentTypeError(f"{text!r} is no address such as {example}")
    return text


def proxy_url(text: str) -> str:
    """Return the URL of a proxy; its password no longer shows in this machine's list of processes."""
    from mind2web2.capture.network.upstream import parsed_upstream

    try:
        parsed_upstream(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    finally:
        _hide_in_process_list(text)
    return text


def _hide_in_process_list(argument: str) -> None:
    """Overwrite an argument of this process where other users can read it; does nothing but on Linux."""
    secret = os.fsencode(argument)
    try:
        position = Path("/proc/self/cmdline").read_bytes().find(secret)
        # proc(5): the 48th field is the address of the arguments; the second may hold spaces.
        start = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[45])
    except (OSError, IndexError, ValueError):
        return
    if position >= 0 and start > 0:
        import ctypes

        ctypes.memset(start + position, ord("*"), len(secret))


def temperature(text: str) -> float:
    """Return a sampling temperature."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not a temperature from 0 to 2")
    return value


def add_task_option(parser: argparse.ArgumentParser, default: str = "all that have answers") -> None:
    """Add ``--task_id``, which may be repeated."""
    parser.add_argument(
        "--task_id",
        metavar="ID",
        action="append",
        dest="task_ids",
        help=f"this task only; may be repeated (default: {default})",
    )


def add_judge_parameters(group: argparse._ArgumentGroup) -> None:
    """Add the options that say which server judges, and how."""
    group.add_argument("--judge_base_url", metavar="URL", help="an OpenAI-compatible or other server")
    group.add_argument(
        "--judge_reasoning_effort", metavar="E", help="for reasoning models, such as low, medium or high"
    )
    group.add_argument(
        "--judge_temperature",
        metavar="T",
        type=temperature,
        help="default: 0, and none for reasoning models",
    )


def add_network_options(group: argparse._ArgumentGroup) -> None:
    """Add the options that say what captures and downloads may connect to, and how."""
    group.add_argument(
        "--proxy",
        metavar="URL",
        type=proxy_url,
        help="for browser and downloads, such as http://USER:PASSWORD@proxy.example:3128 (default: those of "
        "HTTP_PROXY and HTTPS_PROXY; NO_PROXY lists hosts to reach without)",
    )
    group.add_argument(
        "--storage_state",
        metavar="FILE",
        type=Path,
        help="cookies and local storage of a login, as Playwright saves them, for all captured pages",
    )
    group.add_argument(
        "--allow_private_network",
        action="store_true",
        help="also pages and downloads on private, loopback and link-local addresses, which are refused "
        "otherwise",
    )


def network_of(options: argparse.Namespace) -> NetworkSettings:
    """Return what captures and downloads may connect to.

    Raises:
        UsageError: the environment names a proxy that is none.
    """
    from mind2web2.capture.network.upstream import parsed_upstream
    from mind2web2.capture.settings import NetworkSettings, environment_proxies

    proxies = environment_proxies()
    if options.proxy is not None:
        proxies |= {"http": options.proxy, "https": options.proxy}
    for scheme in ("http", "https"):
        if proxies.get(scheme):
            parsed_upstream(proxies[scheme])
    return NetworkSettings(allow_private_network=options.allow_private_network, proxies=proxies)


def storage_state_of(options: argparse.Namespace) -> Mapping[str, Any] | None:
    """Return the cookies and local storage of ``--storage_state``.

    Raises:
        UsageError: the file cannot be read, or has another form.
    """
    if options.storage_state is None:
        return None
    try:
        state = json.loads(options.storage_state.read_bytes())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not JSON"
        raise UsageError(f"cannot read --storage_state {options.storage_state}: {reason}") from None
    fields = ("cookies", "origins")
    if not isinstance(state, dict) or not any(name in state for name in fields):
        raise UsageError(
            f"--storage_state {options.storage_state} has neither cookies nor origins: save it by "
            "Playwright's context.storage_state(path=...)"
        )
    if not all(isinstance(entry, dict) for name in fields for entry in _entries(state.get(name, []))):
        raise UsageError(
            f"--storage_state {options.storage_state}: cookies and origins must be lists of objects"
        )
    return {name: state.get(name, []) for name in fields}


def _entries(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else [value]


def add_folder_options(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add options for the project's folders."""
    group = parser.add_argument_group("folders")
    helps = {
        "answer_folder": "the agents' answers (default: answers/)",
        "eval_scripts_root": "the tasks' eval scripts (default: eval_scripts/)",
        "eval_results_root": "where results go (default: eval_results/)",
        "cache_root": "the cached pages (default: cache/)",
    }
    for name in names:
        group.add_argument(f"--{name}", metavar="DIR", type=Path, help=helps[name])


def paths_of(options: argparse.Namespace) -> PathConfig:
    """Return the folders that the options name, the others under the working directory."""
    from mind2web2.utils.path_config import PathConfig

    given = vars(options)
    return PathConfig(Path()).apply_overrides(
        answers_root=given.get("answer_folder"),
        eval_scripts_root=given.get("eval_scripts_root"),
        eval_results_root=given.get("eval_results_root"),
        cache_root=given.get("cache_root"),
        eval_version=given.get("eval_version"),
    )


BATCH_PROVIDERS = ("openai", "azure_openai")
_OWN_WINDOW = "--cdp_url captures in your own Chrome, whose window is its own affair: leave --headed out"


def check_options(options: argparse.Namespace) -> None:
    """Make sure that each option given for an evaluation has its effect.

    A limit that holds of itself, as ``--max_cost`` does in a replay, is kept and not refused.

    Raises:
        UsageError: says which option to leave out or to add.
    """
    for conflict in _conflicts(options):
        raise UsageError(conflict)


def check_caching_options(options: argparse.Namespace) -> None:
    """Make sure that each option given for caching has its effect.

    Raises:
        UsageError: says which option to leave out.
    """
    given = [f"--{name}" for name in ("judge_model", "judge_base_url") if getattr(options, name, None)]
    if options.no_llm and given:
        raise UsageError(f"--no_llm asks no model: leave {' and '.join(given)} out")
    if options.archive_url is not None and not options.archive:
        raise UsageError("--archive_url goes with --archive")
    if options.cdp_url and not options.headless:
        raise UsageError(_OWN_WINDOW)
    for conflict in _own_browser_conflicts(options):
        raise UsageError(conflict)


def _conflicts(options: argparse.Namespace) -> Iterator[str]:
    is_replay = options.llm_provider == "replay"
    if options.judgments is not None and not is_replay:
        yield "--judgments goes with --llm_provider replay"
    if is_replay and options.overwrite:
        yield "--overwrite asks everything anew, --llm_provider replay asks nothing: leave one of them out"
    yield from _batch_conflicts(options)
    yield from _capture_conflicts(options)
    yield from _script_conflicts(options)


def _batch_conflicts(options: argparse.Namespace) -> Iterator[str]:
    if not options.batch:
        if options.batch_poll is not None:
            yield "--batch_poll goes with --batch"
        return
    if options.llm_provider not in BATCH_PROVIDERS:
        yield (
            f"--batch goes with --llm_provider {' or '.join(BATCH_PROVIDERS)}, not {options.llm_provider}: "
            "evaluate without --batch"
        )
    if options.max_llm_requests is not None:
        yield "--max_llm_requests does not bound what is in a batch: leave it out with --batch"


def _own_browser_conflicts(options: argparse.Namespace) -> Iterator[str]:
    given = [f"--{name}" for name in ("proxy", "storage_state") if getattr(options, name)]
    if options.cdp_url and given:
        yield (
            f"--cdp_url captures in your own Chrome, with its own connections and logins: leave "
            f"{' and '.join(given)} out"
        )


def _capture_conflicts(options: argparse.Namespace) -> Iterator[str]:
    yield from _own_browser_conflicts(options)
    given = [f"--{name}" for name in ("headed", "cdp_url", "storage_state") if getattr(options, name)]
    if not given:
        return
    if options.no_capture:
        yield f"--no_capture captures nothing: leave {' and '.join(given)} out"
    if options.llm_provider == "replay":
        yield f"--llm_provider replay captures nothing: leave {' and '.join(given)} out"
    if options.headed and options.cdp_url:
        yield _OWN_WINDOW


def _script_conflicts(options: argparse.Namespace) -> Iterator[str]:
    given = [f"--{name}" for name in ("script_memory", "script_env", "as_of") if getattr(options, name)]
    if not given:
        return
    if options.isolate is False:
        yield f"--no_isolate runs scripts in the process of the run: leave {' and '.join(given)} out"
    if options.isolate is None and options.batch:
        yield (
            "with --batch, scripts run in the process of the run: give --isolate, or leave "
            f"{' and '.join(given)} out"
        )
    for name in options.script_env:
        if name not in os.environ:
            yield (
                f"--script_env takes the name of a variable that is set, not {name!r}: set it, or leave "
                "--script_env out"
            )


FILE_NAME = "mind2web2.toml"

_JUDGE = ("llm_provider", "judge_model", "judge_base_url")
_PRICES = {"input": "input_usd", "cached_input": "cached_usd", "output": "output_usd"}
_MAX_PRICE_USD = 1e9
# Of a base URL: user and password, and the query.
_SECRET_PARTS = re.compile(r"(?<=//)[^/@]*@|(?<=\w)\?.*")
_USER_INFO = re.compile(r"(?<=//)[^/]*@|^[^/]*@")
_EXAMPLE = '[prices."MODEL"] with input and output in dollars per million tokens'


def apply_settings_file(options: argparse.Namespace) -> None:
    """Fill the options that the command line leaves open, set prices, and print the settings that are used.

    A replay takes its judge from the store of judgments: only prices apply to it. Where the command line
    names another provider than the file, the file's judge settings do not apply.

    Raises:
        UsageError: the file cannot be read, or has an unknown key or an unsuitable value.
    """
    path = Path(FILE_NAME)
    if not os.path.lexists(path):
        return
    settings = _read(path)
    used = []
    for name, value in _applicable(settings, options).items():
        setattr(options, name, value)
        used.append(f"{name} {_SECRET_PARTS.sub('', str(value))}")
    options.from_file = frozenset(word.partition(" ")[0] for word in used)
    used += _set_prices(settings.get("prices", {}))
    if used:
        print(f"Settings from {FILE_NAME}: {', '.join(used)}.")  # noqa: T201


def names_a_judge(options: argparse.Namespace) -> bool:
    """Return whether the command line or the file names provider, model or base URL of the judge."""
    named = given_options(options) | getattr(options, "from_file", frozenset())
    return not named.isdisjoint(_JUDGE)


def _applicable(settings: Mapping[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    given = given_options(options)
    if getattr(options, "llm_provider", None) == "replay":
        return {}
    provider = getattr(options, "llm_provider", None)
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
    content = _parsed(path)
    for name, value in content.items():
        if name not in _SETTINGS and name != "prices":
            raise _unknown_key(name, [*_SETTINGS, "prices"], FILE_NAME)
        if name != "prices":
            _check_type(name, value)
    return {
        name: value if name == "prices" else _option_value(name, value) for name, value in content.items()
    }


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise UsageError(f"cannot read {FILE_NAME}: it is a link to a file that does not exist") from error
    except OSError as error:
        raise UsageError(f"cannot read {FILE_NAME}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read {FILE_NAME}: it is not UTF-8 text") from error
    except ValueError as error:
        raise UsageError(f"cannot read {FILE_NAME}: {error}") from error


def _check_type(name: str, value: object) -> None:
    kind, example, _ = _SETTINGS[name]
    # A bool is an int to Python, and a whole number is as good as a float to people.
    is_right = isinstance(value, int | float if kind is float else kind) and not isinstance(value, bool)
    if not is_right or not str(value).strip():
        raise UsageError(f"{FILE_NAME}: {name} is {value!r}: write for example {name} = {example}")


def _option_value(name: str, value: object) -> Any:
    try:
        return _SETTINGS[name][2](str(value))
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"{FILE_NAME}: {name}: {error}") from error


def _set_prices(prices: object) -> list[str]:
    from mind2web2.llm_client.prices import OwnPrice, set_own_prices

    if not isinstance(prices, dict) or not all(isinstance(price, dict) for price in prices.values()):
        raise UsageError(f"{FILE_NAME}: prices: write {_EXAMPLE}")
    own = {}
    for model, price in prices.items():
        if any(isinstance(amount, dict) for amount in price.values()):
            raise UsageError(
                f'{FILE_NAME}: prices: write a name with a dot in quotes: [prices."{_dotted(prices)}"]'
            )
        for kind in price.keys() - _PRICES.keys():
            raise _unknown_key(kind, _PRICES, f"{FILE_NAME}: prices of {model}")
        if not {"input", "output"} <= price.keys() or not all(map(_is_price, price.values())):
            raise UsageError(f"{FILE_NAME}: prices of {model}: write {_EXAMPLE}")
        own[model] = OwnPrice(**{_PRICES[kind]: float(amount) for kind, amount in price.items()})
    set_own_prices(own)
    return [f"prices of {model}" for model in own]


def _dotted(table: Mapping[str, Any]) -> str:
    """Return the model's name that TOML has split at its dots."""
    name, inner = next(item for item in table.items() if isinstance(item[1], dict))
    is_split = any(isinstance(value, dict) for value in inner.values())
    return f"{name}.{_dotted(inner)}" if is_split else name


def _is_price(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MAX_PRICE_USD


def _unknown_key(name: str, known: Iterable[str], where: str) -> UsageError:
    names = list(known)
    nearest = difflib.get_close_matches(name.replace("-", "_"), names, n=1)
    if name == "no_screenshots":
        cure = "write max_images = 0"
    elif re.search("key|secret|token$", name, re.IGNORECASE):
        cure = "API keys come from environment variables, such as OPENAI_API_KEY"
    elif nearest:
        cure = f"did you mean {nearest[0]}?"
    else:
        cure = f"known are {', '.join(names)}"
    return UsageError(f"{where}: unknown key {name}: {cure}")


def _provider(text: str) -> str:
    if text not in JUDGE_PROVIDERS:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(JUDGE_PROVIDERS)}")
    return text


def _server(text: str) -> str:
    from mind2web2.llm_client.settings import check_address

    check_address(text, f"{FILE_NAME}: judge_base_url")
    return text


# By the option's name: the type in the file, an example, and the option's own check.
_SETTINGS: dict[str, tuple[type, str, Callable[[str], Any]]] = {
    "llm_provider": (str, '"openai"', _provider),
    "judge_model": (str, '"gpt-5-mini"', str),
    "judge_base_url": (str, '"http://localhost:8000/v1"', _server),
    "judge_reasoning_effort": (str, '"low"', str),
    "judge_temperature": (float, "0.5", temperature),
    "max_images": (int, "1", count),
    "max_llm_requests": (int, "60", positive_int),
    "max_concurrent_tasks": (int, "3", positive_int),
    "max_concurrent_answers": (int, "3", positive_int),
    "max_webpage_retrieval": (int, "10", positive_int),
}


# Suggested commands are spelled as the user started this one, with the judge of the results.
_FOLDERS = {
    "cache": ("answer_folder", "cache_root"),
    "evaluate": ("answer_folder", "eval_scripts_root", "eval_results_root", "cache_root", "eval_version"),
    "judgments": ("eval_results_root",),
    "metrics": ("answer_folder", "eval_scripts_root", "eval_results_root", "cache_root", "eval_version"),
    "show": ("eval_results_root", "cache_root"),
}
_OPENAI = "https://api.openai.com/v1"
REPLAY = "replay"
# The folder of an agent's results that keeps the state of its batches.
BATCHES = "batches"


def suggested_command(options: argparse.Namespace, command: str, *words: str) -> str:
    """Return a command to be copied into the shell that the present one was started from.

    Args:
        options: of the present command; its folders are named again.
        command: a subcommand of ``mind2web2``.
        words: its arguments and options.
    """
    given = vars(options)
    folders = [(name, given.get(name)) for name in _FOLDERS[command]]
    named = [word for name, value in folders if value is not None for word in (f"--{name}", str(value))]
    return shlex.join([*_program(), command, *words, *named])


def suggested_evaluation(
    options: argparse.Namespace, agent_name: str, result: Mapping[str, Any] | None, *words: str
) -> str:
    """Return the command that evaluates the agent by the judge, and in the way, of one of its results.

    Args:
        result: the content of a result file, where there is one.
        words: further options.
    """
    return suggested_command(options, "evaluate", agent_name, *words, *evaluation_options(result))


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
    made_from = _mapping(None if result is None else result.get("provenance"))
    judge = _mapping(made_from.get("judge"))
    if not judge:
        return []
    words = [word for name, value in _judge(judge) for word in (f"--{name}", value)]
    if source := _mapping(made_from.get("replayed_from")).get("path"):
        words += ["--judgments", str(source)]
    if judge.get("max_images") == 0:
        words.append("--no_screenshots")
    inputs = _mapping(made_from.get("inputs"))
    words += [word for name in _mapping(inputs.get("variables")) for word in ("--script_env", str(name))]
    if inputs.get("as_of") and not _mapping(made_from.get("replayed_from")):
        words += ["--as_of", str(inputs["as_of"])]
    if made_from.get("with_private_network"):
        words.append("--allow_private_network")
    if not made_from.get("with_captures") and judge.get("provider") != REPLAY:
        words.append("--no_capture")
    return words


def _judge(judge: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    provider = str(judge.get("provider"))
    if provider not in ("openai", "client"):
        yield "llm_provider", provider
    yield "judge_model", str(judge.get("model"))
    # "openai http://127.0.0.1:8000/v1": the provider's name and the server's address.
    server = str(judge.get("endpoint")).rpartition(" ")[2]
    if provider == "openai" and "://" in server and server != (os.environ.get("OPENAI_BASE_URL") or _OPENAI):
        yield "judge_base_url", server
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


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
