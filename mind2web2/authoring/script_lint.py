"""Lint of eval scripts: what their syntax shows to be wrong, or to let wrong answers pass."""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import warnings
from collections.abc import Callable, Iterator
from itertools import combinations

from mind2web2.authoring.lint_rules import (
    ABOUT_THE_ANSWER,
    ALL_OF_THEM,
    HIDDEN_TAG,
    RANGE_OR_UNIT,
    has_several_facts,
    unclear_word,
)
from mind2web2.authoring.script_facts import (
    CUSTOM,
    INNER,
    CallSite,
    ClaimSite,
    Function,
    Place,
    ScriptFacts,
    called_name,
    names_in,
)
from mind2web2.utils.text import counted

# A line, a rule's number, and what the line shows.
Found = tuple[int, str, str]

_MODULE_NAMES = frozenset(
    {
        *dir(builtins),
        "__file__",
        "__name__",
        "__doc__",
        "__spec__",
        "__loader__",
        "__package__",
        "__path__",
    }
)
_REGULAR_EXPRESSIONS = frozenset(
    {"search", "match", "fullmatch", "findall", "finditer"}
)
_TEXT_TESTS = frozenset({"count", "find", "startswith", "endswith", "index"})
_EXPECTED = re.compile(
    r"EXPECTED|GROUND|TRUTH|GOLD|CORRECT|REFERENCE|SOLUTION", re.IGNORECASE
)
_CLOCKS = frozenset({"now", "today", "utcnow"})
_NUMBERS = re.compile(r"\b(?:int|float|Decimal)\b")


def script_findings(source: bytes, name: str) -> list[Found]:
    """Return the findings on an eval script, by line.

    Args:
        source: the file's content.
        name: the file's name, for the parser.
    """
    try:
        with warnings.catch_warnings():
            # Of the script's literals, such as "\d": its author's matter.
            warnings.simplefilter("ignore")
            tree = ast.parse(source, name)
            facts = ScriptFacts(tree)
            undefined = list(_undefined_names(source, name, tree))
            findings = [found for rule in _CHECKS for found in rule(facts)]
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        return [(line, "R101", getattr(error, "msg", None) or str(error))]
    except (RecursionError, MemoryError):
        return [(1, "R101", "nested too deeply to be read")]
    return sorted({*undefined, *findings})


def _undefined_names(source: bytes, name: str, tree: ast.Module) -> Iterator[Found]:
    text = source.decode("utf-8", "replace")
    table = symtable.symtable(text, name, "exec")
    stars = any(
        isinstance(node, ast.ImportFrom)
        and any(alias.name == "*" for alias in node.names)
        for node in ast.walk(tree)
    )
    if stars:
        return
    defined = set(_MODULE_NAMES)
    missing: set[str] = set()
    scopes = [table]
    while scopes:
        scope = scopes.pop()
        scopes.extend(scope.get_children())
        for symbol in scope.get_symbols():
            is_global = scope is table or symbol.is_global()
            if is_global and (
                symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
            ):
                defined.add(symbol.get_name())
            elif is_global and symbol.is_referenced():
                missing.add(symbol.get_name())
    missing -= defined
    for node in ast.walk(tree) if missing else ():
        if (
            isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Load)
            and node.id in missing
        ):
            missing.discard(node.id)
            yield node.lineno, "R102", node.id


def _entry(facts: ScriptFacts) -> Iterator[Found]:
    entry = facts.functions.get("evaluate_answer")
    if entry is None and "evaluate_answer" not in {name for _, name in facts.assigned}:
        yield 1, "R103", "there is no function evaluate_answer"
    elif entry is not None and not isinstance(entry, ast.AsyncFunctionDef):
        yield entry.lineno, "R103", "evaluate_answer is no `async def`"


def _is_nothing(expression: ast.expr | None) -> bool:
    """Tell whether sources are none, so that the claim is judged from the answer alone."""
    if expression is None:
        return True
    is_none = isinstance(expression, ast.Constant) and expression.value is None
    return is_none or (isinstance(expression, ast.List) and not expression.elts)


def _sourceless_claims(facts: ScriptFacts) -> Iterator[Found]:
    for claim in facts.claims:
        if claim.opens_page or not _is_nothing(
            facts.resolved(claim.sources, claim.place)
        ):
            continue
        text = facts.text(claim.claim, claim.place)
        instruction = facts.text(claim.instruction, claim.place) or ""
        if text and not ABOUT_THE_ANSWER.search(f"{text} {instruction}"):
            yield claim.line, "R201", _short(text)


def _ungated_sources(facts: ScriptFacts) -> Iterator[Found]:
    gated = {
        name
        for site in facts.nodes
        if site.name in CUSTOM
        and site.is_critical is not False
        and "result" in site.arguments
        for name in _deep_names(facts, site.arguments["result"], site.place)
    }
    for claim in facts.claims:
        if claim.opens_page or claim.sources is None:
            continue
        sources = facts.resolved(claim.sources, claim.place)
        attribute = _last_attribute(sources)
        if attribute is None or attribute in gated:
            continue
        if attribute not in facts.tests.get(claim.place.function, ()):
            yield claim.line, "R202", f"sources={ast.unparse(claim.sources)}"


def _last_attribute(expression: ast.expr | None) -> str | None:
    """Return the field of an extraction that an expression reads, as in `plan.urls` or `plan.urls[:3]`."""
    while isinstance(expression, ast.Subscript):
        expression = expression.value
    if isinstance(expression, ast.BoolOp):
        return _last_attribute(expression.values[0])
    if isinstance(expression, ast.IfExp):
        return None
    return expression.attr if isinstance(expression, ast.Attribute) else None


def _deep_names(facts: ScriptFacts, expression: ast.expr, place: Place) -> set[str]:
    """Return names in an expression and in what its names stand for."""
    names = names_in(expression)
    for name in list(names):
        for value in facts.assigned.get((place.function, name), ()):
            names |= names_in(value)
    for name in list(names):
        function = facts.functions.get(name)
        names |= names_in(function) if function is not None else set()
    return names


def _no_page(facts: ScriptFacts) -> Iterator[Found]:
    opens = any(
        claim.opens_page or not _is_nothing(facts.resolved(claim.sources, claim.place))
        for claim in facts.claims
    )
    reads = any(
        not _is_nothing(site.arguments.get("source")) for site in facts.extractions
    )
    batches = [site for site in facts.calls if site.name == "batch_verify"]
    hidden = any(facts.batch_items(site) is None for site in batches)
    tree = [site for site in facts.nodes if site.name not in INNER]
    if tree and not (opens or reads or hidden):
        yield (
            tree[0].line,
            "R203",
            f"{counted(len(facts.claims), 'claim')}, none with a page",
        )


def _wording_verdicts(facts: ScriptFacts) -> Iterator[Found]:
    texts = _answer_texts(facts)
    for site in facts.nodes:
        result = site.arguments.get("result")
        if site.name not in CUSTOM or result is None:
            continue
        for expression in _behind(facts, result, site.place):
            test = next(
                (node for node in ast.walk(expression) if _tests_wording(node, texts)),
                None,
            )
            if test is not None:
                yield site.line, "R204", _short(ast.unparse(test))
                break


def _answer_texts(facts: ScriptFacts) -> set[str]:
    """Return names that stand for the answer's text, such as `answer` and `lowered = answer.lower()`."""
    texts = {"answer", "answer_text"}
    for _ in range(3):
        texts |= {
            name
            for (_, name), values in facts.assigned.items()
            if any(_is_text_of(value, texts) for value in values)
        }
    return texts


def _is_text_of(expression: ast.expr, texts: set[str]) -> bool:
    """Tell whether an expression is one of the texts, perhaps changed by methods or `or`."""
    while True:
        if isinstance(expression, ast.Call) and isinstance(
            expression.func, ast.Attribute
        ):
            if expression.func.attr not in {
                "lower",
                "casefold",
                "strip",
                "upper",
                "replace",
            }:
                return False
            expression = expression.func.value
        elif isinstance(expression, ast.BoolOp):
            expression = expression.values[0]
        else:
            return isinstance(expression, ast.Name) and expression.id in texts


def _tests_wording(node: ast.AST, texts: set[str]) -> bool:
    if isinstance(node, ast.Compare):
        sides = zip(node.ops, node.comparators, strict=True)
        return any(
            isinstance(op, ast.In | ast.NotIn) and _is_text_of(side, texts)
            for op, side in sides
        )
    if isinstance(node, ast.Call):
        name = called_name(node)
        if name in _REGULAR_EXPRESSIONS and any(
            _is_text_of(argument, texts) for argument in node.args
        ):
            return True
        is_method = isinstance(node.func, ast.Attribute) and name in _TEXT_TESTS
        return is_method and _is_text_of(node.func.value, texts)  # type: ignore[attr-defined]
    return False


def _behind(
    facts: ScriptFacts, expression: ast.expr, place: Place
) -> Iterator[ast.AST]:
    """Yield an expression, what its names stand for, and the functions that it calls."""
    yield expression
    seen: set[str] = set()
    waiting: list[ast.AST] = [expression]
    for _ in range(20):
        if not waiting:
            return
        for name in names_in(waiting.pop()) - seen:
            seen.add(name)
            found: list[ast.AST] = list(facts.assigned.get((place.function, name), ()))
            function = facts.functions.get(name)
            if function is not None and function is not place.function:
                found.append(function)
            yield from found
            waiting += found


def _given_away(facts: ScriptFacts) -> Iterator[Found]:
    question = " ".join(
        facts.text(site.arguments.get("task_description"), site.place) or ""
        for site in facts.calls
        if site.name == "initialize"
    ).casefold()
    expected = {
        text for text in _expected_values(facts) if text.casefold() not in question
    }
    for site in facts.extractions:
        prompt = facts.text(site.arguments.get("prompt"), site.place) or ""
        for value in sorted(expected):
            if re.search(rf"(?<!\w){re.escape(value)}(?!\w)", prompt, re.IGNORECASE):
                yield site.line, "R205", f"the prompt says '{_short(value)}'"
                break


def _expected_values(facts: ScriptFacts) -> Iterator[str]:
    """Yield literal values that the script compares extracted ones with, or calls the truth."""
    for site in facts.calls:
        if site.name == "add_ground_truth" and "gt_info" in site.arguments:
            truth = facts.resolved(site.arguments["gt_info"], site.place)
            yield from _literals(truth.values if isinstance(truth, ast.Dict) else [])
        elif site.name in CUSTOM and "result" in site.arguments:
            for part in _behind(facts, site.arguments["result"], site.place):
                for node in ast.walk(part):
                    if isinstance(node, ast.Compare):
                        yield from _literals([node.left, *node.comparators])
    for (function, name), values in facts.assigned.items():
        if function is None and _EXPECTED.search(name):
            yield from _literals(values)


def _literals(expressions: list[ast.expr]) -> Iterator[str]:
    for expression in expressions:
        for node in ast.walk(expression):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and len(node.value.strip()) >= 4
            ):
                yield node.value.strip()


def _no_gate(facts: ScriptFacts) -> Iterator[Found]:
    if not facts.nodes:
        return
    sequential = any(
        site.name == "add_sequential" or "SEQUENTIAL" in names_in(site.call)
        for site in facts.calls
        if site.name in {"add_sequential", "initialize", "VerificationNode"}
    )
    critical = any(site.is_critical is not False for site in facts.nodes)
    if not sequential and not critical:
        yield (
            facts.nodes[0].line,
            "R301",
            f"{counted(len(facts.nodes), 'node')}, none critical",
        )


def _impossible_children(facts: ScriptFacts) -> Iterator[Found]:
    for site in facts.nodes:
        parent = facts.resolved(site.arguments.get("parent"), site.place)
        above = next((other for other in facts.nodes if other.call is parent), None)
        if above is not None and above.is_critical and site.is_critical is False:
            yield site.line, "R302", _name_of(facts, site)


def _repeated_tests(facts: ScriptFacts) -> Iterator[Found]:
    tests: dict[tuple[Function | None, str], CallSite | ClaimSite] = {}
    for site in facts.nodes:
        result = site.arguments.get("result")
        if (
            site.name not in CUSTOM
            or result is None
            or isinstance(result, ast.Constant)
        ):
            continue
        earlier = tests.setdefault((site.place.function, ast.dump(result)), site)
        if earlier is not site and not earlier.place.excludes(site.place):
            yield (
                site.line,
                "R303",
                f"the test of line {earlier.line}: {_short(ast.unparse(result))}",
            )
    for claim in facts.claims:
        if facts.text(claim.claim, claim.place) is None or claim.claim is None:
            continue
        stands_for = facts.resolved(claim.claim, claim.place) or claim.claim
        sources = ast.dump(claim.sources) if claim.sources is not None else ""
        earlier = tests.setdefault(
            (claim.place.function, ast.dump(stands_for) + sources), claim
        )
        if earlier is not claim and not earlier.place.excludes(claim.place):
            yield claim.line, "R303", f"the claim of line {earlier.line}"


def _repeated_ids(facts: ScriptFacts) -> Iterator[Found]:
    by_id: dict[str, list[CallSite]] = {}
    for site in facts.nodes:
        literal = site.arguments.get("id")
        if isinstance(literal, ast.Constant) and isinstance(literal.value, str):
            by_id.setdefault(literal.value, []).append(site)
    for node_id, sites in by_id.items():
        for earlier, later in combinations(
            sorted(sites, key=lambda site: site.line), 2
        ):
            if not earlier.place.excludes(later.place):
                yield (
                    later.line,
                    "R304",
                    f"'{node_id}' is the id of line {earlier.line} too",
                )
                break


def _unjudged_leaves(facts: ScriptFacts) -> Iterator[Found]:
    for site in facts.nodes:
        if site.name != "add_leaf" or {"score", "status"} & site.arguments.keys():
            continue
        name = facts.bound_calls.get(id(site.call))
        is_dropped = id(site.call) in facts.statements
        if is_dropped or (name is not None and not _is_read(facts, name, site)):
            yield site.line, "R305", _name_of(facts, site)


def _is_read(facts: ScriptFacts, name: str, site: CallSite) -> bool:
    """Tell whether a name is read in the function, or in one within it."""
    return any(loaded == name for _, loaded in facts.loads) and (
        (site.place.function, name) in facts.loads
        or any(
            loaded == name and function is not None and site.place.function is not None
            for function, loaded in facts.loads
        )
    )


def _unbounded(facts: ScriptFacts) -> Iterator[Found]:
    bounded = any(
        (isinstance(node, ast.Slice) and node.upper is not None)
        or (
            isinstance(node, ast.Call)
            and called_name(node) in {"range", "islice", "min"}
        )
        or (isinstance(node, ast.keyword) and node.arg == "max_length")
        for node in ast.walk(facts.tree)
    )
    if bounded:
        return
    for site in facts.extractions:
        prompt = facts.text(site.arguments.get("prompt"), site.place) or ""
        found = ALL_OF_THEM.search(prompt)
        if found and _extracts_list(facts, site):
            yield site.line, "R306", f"'{_short(prompt[found.start() :])}'"


def _extracts_list(facts: ScriptFacts, site: CallSite) -> bool:
    """Tell whether the template is a list of things, not only of addresses."""
    template = site.arguments.get("template_class")
    model = facts.classes.get(template.id) if isinstance(template, ast.Name) else None
    for field in model.body if model is not None else ():
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            named_urls = re.search(
                r"ur[li]|link|source|cit", field.target.id, re.IGNORECASE
            )
            if (
                re.search(
                    r"\b(list|List|Sequence|tuple)\b", ast.unparse(field.annotation)
                )
                and not named_urls
            ):
                return True
    return False


def _claim_wording(facts: ScriptFacts) -> Iterator[Found]:
    for claim in facts.claims:
        text = facts.text(claim.claim, claim.place)
        if not text:
            continue
        if has_several_facts(text):
            yield claim.line, "R401", _short(text)
        word = unclear_word(text)
        if word is not None:
            yield claim.line, "R402", f"'{word}' in: {_short(text)}"


def _hidden_tags(facts: ScriptFacts) -> Iterator[Found]:
    for site in facts.nodes:
        tag = HIDDEN_TAG.match(facts.text(site.arguments.get("desc"), site.place) or "")
        if tag is not None:
            yield site.line, "R403", tag[1]


def _numbers_with_units(facts: ScriptFacts) -> Iterator[Found]:
    for model in facts.classes.values():
        for field in model.body:
            if not isinstance(field, ast.AnnAssign) or not isinstance(
                field.target, ast.Name
            ):
                continue
            described = next(
                (
                    keyword.value.value
                    for node in ast.walk(field)
                    if isinstance(node, ast.Call)
                    for keyword in node.keywords
                    if keyword.arg == "description"
                    and isinstance(keyword.value, ast.Constant)
                ),
                "",
            )
            is_number = _NUMBERS.search(ast.unparse(field.annotation)) is not None
            if (
                is_number
                and isinstance(described, str)
                and RANGE_OR_UNIT.search(described)
            ):
                yield field.lineno, "R404", f"{field.target.id}: {_short(described)}"


def _clocks(facts: ScriptFacts) -> Iterator[Found]:
    for call, _ in facts.all_calls:
        if called_name(call) in _CLOCKS and isinstance(call.func, ast.Attribute):
            owner = call.func.value
            last = (
                owner.attr
                if isinstance(owner, ast.Attribute)
                else getattr(owner, "id", "")
            )
            if last in {"datetime", "date", "pd", "Timestamp", "dt"}:
                yield call.lineno, "R405", ast.unparse(call)


def _name_of(facts: ScriptFacts, site: CallSite) -> str:
    return facts.text(site.arguments.get("id"), site.place) or "the node"


def _short(text: str) -> str:
    """Return a text on one line, cut after 80 characters."""
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:79]}\u2026"


_CHECKS: tuple[Callable[[ScriptFacts], Iterator[Found]], ...] = (
    _entry,
    _sourceless_claims,
    _ungated_sources,
    _no_page,
    _wording_verdicts,
    _given_away,
    _no_gate,
    _impossible_children,
    _repeated_tests,
    _repeated_ids,
    _unjudged_leaves,
    _unbounded,
    _claim_wording,
    _hidden_tags,
    _numbers_with_units,
    _clocks,
)
