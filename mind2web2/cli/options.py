"""Options: how they are spelled and checked."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn
from urllib.parse import urlsplit

from mind2web2.errors import UsageError

if TYPE_CHECKING:
    from mind2web2.capture.models import NetworkSettings
    from mind2web2.utils.path_config import PathConfig

Handler = Callable[[argparse.Namespace], int]
Subcommands = Any  # the type of argparse's subparsers action is private

JUDGE_PROVIDERS = ("openai", "azure_openai", "anthropic", "gemini", "bedrock_anthropic")
BATCH_PROVIDERS = ("openai", "azure_openai")
REPLAY = "replay"
RAY = "ray"
DATABASE_URLS = ("postgresql://", "postgres://")
# The folder of an agent's results that keeps the state of its batches.
BATCHES = "batches"
JUDGE_PROVIDERS_HELP = (
    "who judges (default: openai). openai needs OPENAI_API_KEY (and takes OPENAI_BASE_URL); "
    "azure_openai AZURE_OPENAI_API_KEY, AZURE_OPENAI_ENDPOINT_URL, AZURE_OPENAI_API_VERSION; "
    "anthropic ANTHROPIC_API_KEY and the extra 'anthropic'; gemini GEMINI_API_KEY; "
    "bedrock_anthropic AWS_ACCESS_KEY, AWS_SECRET_KEY, AWS_REGION and the extra 'bedrock'"
)
_MAX_PORT = 65_535
_BYTES_A_UNIT = {"M": 1024**2, "G": 1024**3}
_LONG_OPTION = re.compile(r"--[a-z][a-z_-]*(?=$|=)")


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps the paragraphs of descriptions; lines with an indent, such as examples, stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = []
        for is_kept, group in groupby(text.splitlines(), key=lambda line: line[:1] in ("", " ")):
            lines = list(group)
            parts += lines if is_kept else textwrap.wrap(" ".join(lines), width)
        return "".join(f"{indent}{line}\n" for line in parts)


class CommandParser(argparse.ArgumentParser):
    """A parser that takes ``--like-this`` for ``--like_this``, and each single-valued option once.

    The names of the options that were given are in ``given`` of the namespace.
    """

    def __init__(self, **keywords: Any) -> None:
        super().__init__(formatter_class=_HelpFormatter, allow_abbrev=False, **keywords)
        # Names of tasks and answers may begin with a dash: only known options are read as options.
        self._negative_number_matcher = re.compile("-[^-]")
        self.register("action", "given_urls", _GivenUrls)
        self.register("action", None, _StoreOnce)
        self.register("action", "store", _StoreOnce)

    def error(self, message: str) -> NoReturn:
        """Print one line, without the usage, and exit."""
        self.exit(2, f"{self.prog}: error: {message}; see {self.prog} --help\n")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Refuse a URL where a path belongs: ``Path`` would make a folder of its scheme."""
        if action.type is Path and "://" in arg_string:
            hint = ""
            if arg_string.startswith(DATABASE_URLS):
                hint = "; `mind2web2 judgments import AGENT URL` copies the judgments of a database"
            # The URL is not repeated: it may hold a password.
            raise argparse.ArgumentError(action, f"takes a path on this machine, not a URL{hint}")
        return super()._get_value(action, arg_string)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Name the choice that a misspelled word is near to."""
        from difflib import get_close_matches

        choices = [str(choice) for choice in action.choices or ()]
        near = [] if value in choices else get_close_matches(str(value), choices, n=1)
        if near:
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}: did you mean {near[0]}?")
        super()._check_value(action, value)

    def parse_known_args(  # type: ignore[override]  # typeshed's overloads differ in the namespace only
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse, and refuse unknown options here rather than in the parent parser."""
        given = sys.argv[1:] if args is None else args
        known, unknown = super().parse_known_args([_with_underscores(word) for word in given], namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown


class _StoreOnce(argparse.Action):
    """Store a value, or the constant of an option without one; refuse the same option a second time."""

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


class _GivenUrls(argparse.Action):
    """Add a value to a list, and note that the option was given."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,  # noqa: ARG002 (argparse's signature)
    ) -> None:
        urls = getattr(namespace, self.dest) or []
        if values in urls:
            parser.error(f"--{self.dest} {values} was given twice")
        namespace.given = given_options(namespace) | {self.dest}
        setattr(namespace, self.dest, [*urls, values])


def given_options(options: argparse.Namespace) -> frozenset[str]:
    """Return the names of the single-valued options on the command line."""
    given: frozenset[str] = getattr(options, "given", frozenset())
    return given


def _with_underscores(word: str) -> str:
    name = _LONG_OPTION.match(word)
    return word if name is None else "--" + name[0][2:].replace("-", "_") + word[name.end() :]


# Types of values


def positive_int(text: str) -> int:
    """Return a whole number of at least 1."""
    return _whole(text, "a whole number of at least 1", least=1)


def count(text: str) -> int:
    """Return a whole number, 0 included."""
    return _whole(text, "a whole number")


def port_number(text: str) -> int:
    """Return the number of a port, 0 for a free one."""
    return _whole(text, f"a port from 0 (a free one) to {_MAX_PORT}", most=_MAX_PORT)


def image_count(text: str) -> int:
    """Return the number of images to show, at least one."""
    if text == "0":
        raise argparse.ArgumentTypeError("to show no images, give --no_screenshots instead")
    return positive_int(text)


def _whole(text: str, kind: str, least: int = 0, most: float = math.inf) -> int:
    if not text.isascii() or not text.isdecimal() or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not {kind}")
    return int(text)


def positive_seconds(text: str) -> float:
    """Return a positive number of seconds."""
    return _amount(text, "a positive number of seconds", least=sys.float_info.min)


def positive_dollars(text: str) -> float:
    """Return a positive number of dollars."""
    return _amount(text.removeprefix("$"), "a positive number of dollars", least=sys.float_info.min)


def temperature(text: str) -> float:
    """Return a sampling temperature."""
    return _amount(text, "a temperature from 0 to 2", most=2)


def share(text: str) -> float:
    """Return a score, or a difference of scores."""
    return _amount(text, "a score from 0 to 1", most=1)


def _amount(text: str, kind: str, least: float = 0, most: float = sys.float_info.max) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not {kind}")
    return value


def byte_count(text: str) -> int:
    """Return an amount of memory in bytes, given as ``512M`` or ``1.5G``."""
    found = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]+)?) ?([MG])(?:i?B)?", text.strip(), re.IGNORECASE)
    size = round(float(found[1]) * _BYTES_A_UNIT[found[2].upper()]) if found else 0
    if size < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount of memory such as 512M or 2G")
    return size


def as_of(text: str) -> datetime | Literal["answer"]:
    """Return the moment that a script's clock shows, or ``"answer"`` for that of each answer."""
    from mind2web2.utils.moments import parsed_moment

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


# Options of several commands


def add_task_option(parser: argparse.ArgumentParser, default: str = "all that have answers") -> None:
    """Add ``--task_id``, which may be repeated."""
    parser.add_argument(
        "--task_id",
        metavar="ID",
        action="append",
        dest="task_ids",
        help=f"this task only; may be repeated (default: {default})",
    )


_FOLDER_HELPS = {
    "answer_folder": "the agents' answers (default: answers/)",
    "eval_scripts_root": "the tasks' eval scripts (default: eval_scripts/)",
    "eval_results_root": "where results go (default: eval_results/)",
    "cache_root": "the cached pages (default: cache/)",
}


def add_folder_options(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add options for the project's folders, all of them by default."""
    group = parser.add_argument_group("folders")
    for name in names or _FOLDER_HELPS:
        group.add_argument(f"--{name}", metavar="DIR", type=_root, help=_FOLDER_HELPS[name])


def _root(text: str) -> Path | str:
    """Return a folder, or the URL of a root in an object store as it is."""
    return text if "://" in text else Path(text)


def file_or_database(text: str) -> str:
    """Return the path of a file with judgments, or the URL of a database."""
    if "://" in text and not text.startswith(DATABASE_URLS):
        raise argparse.ArgumentTypeError("takes a file on this machine or postgresql://HOST/DATABASE")
    return text


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """Add on which machines the work is done."""
    group = parser.add_argument_group("machines")
    group.add_argument(
        "--engine",
        choices=("plain", RAY),
        default="plain",
        help="ray: on all nodes of a Ray cluster, see docs/scale.md (needs the extra 'ray'); limits of "
        "requests and captures at once then hold on each node (default: plain, this machine)",
    )
    group.add_argument(
        "--ray_address",
        metavar="HOST:PORT",
        help="with --engine ray: the head of the cluster (default: RAY_ADDRESS, then a cluster that runs on "
        "this machine, then a new one of this machine alone)",
    )


def add_browser_options(group: argparse._ArgumentGroup) -> None:
    """Add how pages are captured."""
    group.add_argument(
        "--cdp_url",
        metavar="URL",
        type=browser_address,
        help="capture through your own running Chrome, logged in and past its captchas, such as "
        "http://127.0.0.1:9222",
    )
    add_network_options(group)


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
    from mind2web2.capture.models import NetworkSettings, environment_proxies

    proxies = environment_proxies()
    if options.proxy is not None:
        proxies |= {"http": options.proxy, "https": options.proxy}
    for scheme in ("http", "https"):
        if proxies.get(scheme):
            from mind2web2.capture.network.upstream import parsed_upstream

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
    lists = [state.get(name, []) for name in fields]
    if not all(isinstance(found, list) and all(isinstance(one, dict) for one in found) for found in lists):
        raise UsageError(
            f"--storage_state {options.storage_state}: cookies and origins must be lists of objects"
        )
    return dict(zip(fields, lists, strict=True))


def paths_of(options: argparse.Namespace) -> PathConfig:
    """Return the folders that the options name, the others under the working directory.

    A root in an object store has a working copy, whose files are brought up to date once in a process.
    """
    from mind2web2.utils.path_config import PathConfig

    given = vars(options)
    roots = {name: given.get(name) for name in _FOLDER_HELPS}
    if any(isinstance(root, str) for root in roots.values()):
        from mind2web2.storage.working_copy import working_copies

        named = [given.get("agent"), given.get("agent_name"), *(given.get("agents") or ())]
        agents = sorted({name.rstrip("/") for name in named if name})
        roots = working_copies(roots, agents, given.get("task_ids") or ())
    return PathConfig(Path()).apply_overrides(
        answers_root=roots["answer_folder"],
        eval_scripts_root=roots["eval_scripts_root"],
        eval_results_root=roots["eval_results_root"],
        cache_root=roots["cache_root"],
        eval_version=given.get("eval_version"),
    )


# Options that contradict each other

_OWN_WINDOW = "--cdp_url captures in your own Chrome, which has a window of its own: leave --headed out"


def check_options(options: argparse.Namespace) -> None:
    """Make sure that each option given for an evaluation has its effect.

    A limit that holds of itself, as ``--max_cost`` does in a replay, is accepted.

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
    given = _given(options, "judge_model", "judge_base_url", "judge_pool", "judge_extra_body")
    if options.no_llm and given:
        raise UsageError(f"--no_llm asks no model: leave {given} out")
    if options.archive_url is not None and not options.archive:
        raise UsageError("--archive_url goes with --archive")
    if options.cdp_url and not options.headless:
        raise UsageError(_OWN_WINDOW)
    if options.engine == RAY and (options.cdp_url or not options.headless):
        raise UsageError("a window belongs to one machine: leave --engine ray out")
    for conflict in (*_engine_conflicts(options), *_own_browser_conflicts(options)):
        raise UsageError(conflict)


def _given(options: argparse.Namespace, *names: str) -> str:
    return " and ".join(f"--{name}" for name in names if getattr(options, name))


def _conflicts(options: argparse.Namespace) -> Iterator[str]:
    is_replay = options.llm_provider == REPLAY
    is_shared = str(options.judgments).startswith(DATABASE_URLS)
    yield from _cluster_conflicts(options)
    if options.judgments is not None and not is_replay and not is_shared:
        yield "--judgments FILE goes with --llm_provider replay; a judge shares postgresql://HOST/DATABASE"
    if is_shared and is_replay:
        yield "a replay reads a file: run `mind2web2 judgments import AGENT URL`, and leave --judgments out"
    if is_shared and options.batch:
        yield "--batch keeps its own record of requests: leave --judgments out"
    if is_replay and options.overwrite:
        yield "--overwrite asks everything again, --llm_provider replay asks nothing: leave one of them out"
    if options.judge_pool is not None or len(options.judge_base_url or ()) > 1:
        if is_replay:
            yield "a replay asks no server: leave the judge pool out"
        if options.batch:
            yield "--batch asks the batch endpoints of one provider: leave the judge pool out"
    if options.batch_poll is not None and not options.batch:
        yield "--batch_poll goes with --batch"
    if options.batch and options.llm_provider not in BATCH_PROVIDERS:
        yield (
            f"--batch goes with --llm_provider {' or '.join(BATCH_PROVIDERS)}, not {options.llm_provider}: "
            "evaluate without --batch"
        )
    if options.batch and options.max_llm_requests is not None:
        yield "--max_llm_requests does not limit a batch: leave it out with --batch"
    yield from _capture_conflicts(options)
    yield from _script_conflicts(options)


def _engine_conflicts(options: argparse.Namespace) -> Iterator[str]:
    if options.ray_address is not None and options.engine != RAY:
        yield "--ray_address goes with --engine ray"


def _cluster_conflicts(options: argparse.Namespace) -> Iterator[str]:
    yield from _engine_conflicts(options)
    if options.engine != RAY:
        return
    if options.llm_provider == REPLAY:
        yield "a replay asks no judge, and reads a file of this machine: leave --engine ray out"
    if here := _given(options, "batch", "self_debug", "headed", "cdp_url"):
        yield f"{here} belongs to one machine: leave it out with --engine ray"
    if options.isolate is False:
        yield "--no_isolate is for debugging on one machine: leave it out with --engine ray"
    if not str(options.judgments).startswith(DATABASE_URLS):
        yield "the nodes of a cluster share judgments: add --judgments postgresql://HOST/DATABASE"


def _own_browser_conflicts(options: argparse.Namespace) -> Iterator[str]:
    given = _given(options, "proxy", "storage_state")
    if options.cdp_url and given:
        yield f"--cdp_url captures in your own Chrome, with its connections and logins: leave {given} out"


def _capture_conflicts(options: argparse.Namespace) -> Iterator[str]:
    yield from _own_browser_conflicts(options)
    is_replay = options.llm_provider == REPLAY
    if browser := _given(options, "headed", "cdp_url", "storage_state"):
        if options.no_capture or is_replay:
            cause = "--no_capture" if options.no_capture else "--llm_provider replay"
            yield f"{cause} captures nothing: leave {browser} out"
        if options.headed and options.cdp_url:
            yield _OWN_WINDOW


def _script_conflicts(options: argparse.Namespace) -> Iterator[str]:
    if isolated := _given(options, "script_memory", "script_env", "as_of"):
        if options.isolate is False:
            yield f"--no_isolate runs scripts in the process of the run: leave {isolated} out"
        if options.isolate is None and options.batch:
            yield (
                "with --batch, scripts run in the process of the run: give --isolate, or leave "
                f"{isolated} out"
            )
    for name in options.script_env:
        if name not in os.environ:
            yield (
                f"--script_env takes the name of a variable that is set, not {name!r}: set it, or leave "
                "--script_env out"
            )
