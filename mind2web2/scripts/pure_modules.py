"""The modules and names that leave a script a function of answer, pages and judgments alone.

A script that uses anything else may read files, clock, environment, network or random numbers.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# If a module has no names here, all its public names but modules count. Names for files, clocks and
# code are left out.
_STANDARD: dict[str, str] = {
    "__future__": "",
    "abc": "",
    "ast": "literal_eval",
    "asyncio": "AbstractEventLoop BoundedSemaphore CancelledError Condition Event FIRST_COMPLETED "
    "FIRST_EXCEPTION ALL_COMPLETED Future InvalidStateError LifoQueue Lock PriorityQueue Queue "
    "QueueEmpty QueueFull Semaphore Task TaskGroup TimeoutError as_completed create_task "
    "current_task ensure_future gather iscoroutine iscoroutinefunction isfuture shield sleep "
    "timeout wait wait_for",
    "base64": "b16decode b16encode b32decode b32encode b64decode b64encode b85decode b85encode "
    "standard_b64decode standard_b64encode urlsafe_b64decode urlsafe_b64encode",
    "binascii": "",
    "bisect": "",
    "calendar": "Calendar IllegalMonthError IllegalWeekdayError day_abbr day_name isleap leapdays "
    "month_abbr month_name monthcalendar monthrange timegm weekday "
    "MONDAY TUESDAY WEDNESDAY THURSDAY FRIDAY SATURDAY SUNDAY",
    "cmath": "",
    "collections": "",
    "collections.abc": "",
    "colorsys": "",
    "contextlib": "",
    "copy": "",
    "csv": "",
    "dataclasses": "",
    "datetime": "",
    "decimal": "",
    "difflib": "",
    "enum": "",
    "fractions": "",
    "functools": "",
    "graphlib": "",
    "hashlib": "md5 new sha1 sha224 sha256 sha384 sha512",
    "heapq": "",
    "html": "",
    "io": "BytesIO StringIO TextIOBase",
    "ipaddress": "",
    "itertools": "",
    "json": "",
    "keyword": "",
    "logging": "CRITICAL DEBUG ERROR INFO WARNING Logger LoggerAdapter getLogger",
    "math": "",
    "numbers": "",
    "operator": "",
    "pprint": "",
    "re": "",
    "reprlib": "",
    "statistics": "StatisticsError fmean geometric_mean harmonic_mean mean median median_grouped "
    "median_high median_low mode multimode pstdev pvariance quantiles stdev variance",
    "string": "",
    "struct": "",
    "textwrap": "",
    "types": "MappingProxyType NoneType SimpleNamespace TracebackType",
    "typing": "",
    "unicodedata": "",
    "urllib": "parse",
    "urllib.parse": "",
}
_LIBRARIES: dict[str, str] = {
    "dateutil": "relativedelta",
    "dateutil.relativedelta": "",
    "pydantic": "AliasChoices AliasPath AnyHttpUrl AnyUrl BaseModel ConfigDict Field HttpUrl Json "
    "NonNegativeFloat NonNegativeInt PositiveFloat PositiveInt PrivateAttr RootModel "
    "SerializeAsAny StrictBool StrictFloat StrictInt StrictStr StringConstraints TypeAdapter "
    "ValidationError ValidationInfo computed_field conint confloat conlist constr create_model "
    "field_serializer field_validator model_serializer model_validator root_validator validator",
    "typing_extensions": "",
}
_TOOLKIT_MODULES = frozenset(
    {
        "mind2web2",
        "mind2web2.api_tools",
        "mind2web2.api_tools.tool_arxiv",
        "mind2web2.api_tools.tool_googlemap",
        "mind2web2.eval_runner",
        "mind2web2.eval_toolkit",
        "mind2web2.evaluator",
        "mind2web2.llm_client",
        "mind2web2.llm_client.base_client",
        "mind2web2.utils",
        "mind2web2.utils.cache_filesys",
        "mind2web2.utils.misc",
        "mind2web2.utils.page_info_retrieval",
        "mind2web2.utils.url_tools",
        "mind2web2.verification_tree",
    }
)
# Answers of map and paper services are compared apart.
_TOOLKIT = _words(
    "AggregationStrategy ArxivTool BinaryEvalResult BlindQuestion DualSemaphore Evaluator "
    "EvaluatorConfig Extractor GoogleMapsTool URLs VerificationNode Verifier all_different "
    "all_given create_evaluator encode_image_buffer first_items is_empty is_new "
    "normalize_url_for_browser normalize_url_markdown normalize_url_simple regex_find_urls "
    "remove_utm_parameters same_date same_number same_text same_value shown strip_extension "
    "text_dedent total"
)
# Classes that read files or open connections once they are called: good as annotations only.
ANNOTATIONS_ONLY = _words(
    "AsyncAzureOpenAIClient AsyncOpenAIClient AzureOpenAIClient BatchBrowserManager CacheFileSys "
    "LLMClient OpenAIClient"
)
IMPURE_BUILTINS = _words(
    "__builtins__ __file__ __import__ __loader__ __path__ __spec__ breakpoint compile copyright "
    "credits eval exec globals help input license locals open"
)
# Attributes of any object that lead to files, the clock, the time zone, or from a value to its
# module.
IMPURE_ATTRIBUTES = _words(
    "__builtins__ __code__ __dict__ __file__ __getattribute__ __globals__ __loader__ __spec__ "
    "__subclasses__ ag_frame astimezone cr_frame environ exists f_builtins f_globals f_locals "
    "fromtimestamp getenv gi_frame glob is_dir is_file iterdir lstat modules now open parse_file "
    "read_bytes read_text resolve rglob stat system task_dir tb_frame timestamp today "
    "utcfromtimestamp utcnow walk"
)


def is_pure_module(name: str) -> bool:
    """Tell whether a script may use names of a module."""
    return name in _STANDARD or name in _LIBRARIES or name in _TOOLKIT_MODULES


def is_pure_name(module: str, name: str) -> bool:
    """Tell whether a script may use a name of a module, other than a module in it."""
    if module in _TOOLKIT_MODULES:
        return name in _TOOLKIT or name in ANNOTATIONS_ONLY
    listed = (_STANDARD | _LIBRARIES).get(module)
    if listed is None:
        return False
    return name in listed.split() if listed else _is_public(module, name)


def _is_public(module: str, name: str) -> bool:
    found = import_module(module)
    public = getattr(found, "__all__", None)
    if public is not None:
        return name in public
    is_module = isinstance(getattr(found, name, None), ModuleType)
    return not name.startswith("_") and not is_module
