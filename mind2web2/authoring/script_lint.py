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
_REGULAR_EXPRESSIONS = frozenset({"search", "match", "fullmatch", "findall", "finditer"})
_TEXT_TESTS = frozenset({"count", "find", "startswith", "endswith", "index"})
_TEXT_CHANGES = frozenset({"lower", "casefold", "strip", "upper", "replace"})
_EXPECTED = re.compile(r"EXPECTED|GROUND|TRUTH|GOLD|CORRECT|REFERENCE|SOLUTION", re.IGNORECASE)
_CLOCKS = frozenset({"now", "today", "utcnow"})
_LIST_TYPE = re.compile(r"\b(list|List|Sequence|tuple)\b")
_NAMED_URLS = re.compile(r"ur[li]|link|source|cit", re.IGNORECASE)
_NUMBERS = re.compile(r"\b(?:int|float|Decimal)\b")


def script_findings(source: bytes, name: str) -> list[Found]:
    """Return the findings on an eval script, by line.

    Args:
        source: the file's content.
        name: the file's name, for the parser.
    """
    if not source.strip():
        return [(1, "R101", "the file is empty")]
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
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            imported = [alias.name for alias in node.names]
            if "*" in imported:
                # Any name may come from there.
                return
    defined = set(_MODULE_NAMES)
    missing: set[str] = set()
    scopes = [table]
    while scopes:
        scope = scopes.pop()
        scopes.extend(scope.get_children())
        for symbol in scope.get_symbols():
            if not symbol.is_global() and scope is not table:
                continue
            is_bound = symbol.is_assigned() or symbol.is_imported()
            if is_bound or symbol.is_namespace():
                defined.add(symbol.get_name())
            elif symbol.is_referenced():
                missing.add(symbol.get_name())
    missing -= defined
    if not missing:
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name):
            continue
        if isinstance(node.ctx, ast.Load) and node.id in missing:
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
    if isinstance(expression, ast.Constant):
        return expression.value is None
    if isinstance(expression, ast.List):
        return not expression.elts
    return False


def _sourceless_claims(facts: ScriptFacts) -> Iterator[Found]:
    for claim in facts.claims:
        sources = facts.resolved(claim.sources, claim.place)
        if claim.opens_page or not _is_nothing(sources):
            continue
        text = facts.text(claim.claim, claim.place)
        instruction = facts.text(claim.instruction, claim.place) or ""
        if text and not ABOUT_THE_ANSWER.search(f"{text} {instruction}"):
            yield claim.line, "R201", _short(text)


def _ungated_sources(facts: ScriptFacts) -> Iterator[Found]:
    gated: set[str] = set()
    for site in facts.nodes:
        is_gate = site.name in CUSTOM and site.is_critical is not False
        if is_gate and "result" in site.arguments:
            gated |= _deep_names(facts, site.arguments["result"], site.place)
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
    opens = False
    for claim in facts.claims:
        sources = facts.resolved(claim.sources, claim.place)
        if claim.opens_page or not _is_nothing(sources):
            opens = True
    reads = False
    for site in facts.extractions:
        source = site.arguments.get("source")
        if not _is_nothing(source):
            reads = True
    batches = [site for site in facts.calls if site.name == "batch_verify"]
    hidden = any(facts.batch_items(site) is None for site in batches)
    tree = [site for site in facts.nodes if site.name not in INNER]
    if tree and not (opens or reads or hidden):
        claims = counted(len(facts.claims), "claim")
        yield tree[0].line, "R203", f"{claims}, none with a page"


def _wording_verdicts(facts: ScriptFacts) -> Iterator[Found]:
    texts = _answer_texts(facts)
    for site in facts.nodes:
        result = site.arguments.get("result")
        if site.name not in CUSTOM or result is None:
            continue
        for expression in _behind(facts, result, site.place):
            tests = [node for node in ast.walk(expression) if _tests_wording(node, texts)]
            if tests:
                yield site.line, "R204", _short(ast.unparse(tests[0]))
                break


def _answer_texts(facts: ScriptFacts) -> set[str]:
    """Return names that stand for the answer's text, such as `answer` and `lowered = answer.lower()`."""
    texts = {"answer", "answer_text"}
    for _ in range(3):
        more = set()
        for (_, name), values in facts.assigned.items():
            if any(_is_text_of(value, texts) for value in values):
                more.add(name)
        texts |= more
    return texts


def _is_text_of(expression: ast.expr, texts: set[str]) -> bool:
    """Tell whether an expression is one of the texts, perhaps changed by methods or `or`."""
    while True:
        if isinstance(expression, ast.BoolOp):
            expression = expression.values[0]
            continue
        if not isinstance(expression, ast.Call):
            return isinstance(expression, ast.Name) and expression.id in texts
        method = expression.func
        if not isinstance(method, ast.Attribute) or method.attr not in _TEXT_CHANGES:
            return False
        expression = method.value


def _tests_wording(node: ast.AST, texts: set[str]) -> bool:
    if isinstance(node, ast.Compare):
        for operator, side in zip(node.ops, node.comparators, strict=True):
            is_membership = isinstance(operator, ast.In | ast.NotIn)
            if is_membership and _is_text_of(side, texts):
                return True
        return False
    if isinstance(node, ast.Call):
        name = called_name(node)
        has_text = any(_is_text_of(argument, texts) for argument in node.args)
        if name in _REGULAR_EXPRESSIONS and has_text:
            return True
        is_method = isinstance(node.func, ast.Attribute) and name in _TEXT_TESTS
        return is_method and _is_text_of(node.func.value, texts)  # type: ignore[attr-defined]
    return False


def _behind(facts: ScriptFacts, expression: ast.expr, place: Place) -> Iterator[ast.AST]:
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
    descriptions = []
    for site in facts.calls:
        if site.name == "initialize":
            described = site.arguments.get("task_description")
            descriptions.append(facts.text(described, site.place) or "")
    question = " ".join(descriptions).casefold()
    expected = set()
    for text in _expected_values(facts):
        if text.casefold() not in question:
            expected.add(text)
    for site in facts.extractions:
        prompt = facts.text(site.arguments.get("prompt"), site.place) or ""
        for value in sorted(expected):
            whole_word = rf"(?<!\w){re.escape(value)}(?!\w)"
            if re.search(whole_word, prompt, re.IGNORECASE):
                yield site.line, "R205", f"the prompt says '{_short(value)}'"
                break


def _expected_values(facts: ScriptFacts) -> Iterator[str]:
    """Yield literal values that the script compares extracted ones with, or calls the truth."""
    for site in facts.calls:
        if site.name == "add_ground_truth" and "gt_info" in site.arguments:
            truth = facts.resolved(site.arguments["gt_info"], site.place)
            if isinstance(truth, ast.Dict):
                yield from _literals(truth.values)
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
            if not isinstance(node, ast.Constant):
                continue
            if not isinstance(node.value, str):
                continue
            text = node.value.strip()
            # Shorter ones occur by chance.
            if len(text) >= 4:
                yield text


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
        nodes = counted(len(facts.nodes), "node")
        yield facts.nodes[0].line, "R301", f"{nodes}, none critical"


def _impossible_children(facts: ScriptFacts) -> Iterator[Found]:
    for site in facts.nodes:
        parent = facts.resolved(site.arguments.get("parent"), site.place)
        above = next((other for other in facts.nodes if other.call is parent), None)
        if above is not None and above.is_critical and site.is_critical is False:
            yield site.line, "R302", _name_of(facts, site)


def _repeated_tests(facts: ScriptFacts) -> Iterator[Found]:
    tests: dict[tuple[Function | None, str], CallSite | ClaimSite] = {}
    for site in facts.nodes:
        if site.name not in CUSTOM:
            continue
        result = site.arguments.get("result")
        if result is None or isinstance(result, ast.Constant):
            continue
        test = (site.place.function, ast.dump(result))
        earlier = tests.setdefault(test, site)
        if earlier is not site and not earlier.place.excludes(site.place):
            shown = _short(ast.unparse(result))
            yield site.line, "R303", f"the test of line {earlier.line}: {shown}"
    for claim in facts.claims:
        if facts.text(claim.claim, claim.place) is None or claim.claim is None:
            continue
        stands_for = facts.resolved(claim.claim, claim.place) or claim.claim
        question = ast.dump(stands_for)
        if claim.sources is not None:
            question += ast.dump(claim.sources)
        test = (claim.place.function, question)
        earlier = tests.setdefault(test, claim)
        if earlier is not claim and not earlier.place.excludes(claim.place):
            yield claim.line, "R303", f"the claim of line {earlier.line}"


def _repeated_ids(facts: ScriptFacts) -> Iterator[Found]:
    by_id: dict[str, list[CallSite]] = {}
    for site in facts.nodes:
        literal = site.arguments.get("id")
        if isinstance(literal, ast.Constant) and isinstance(literal.value, str):
            by_id.setdefault(literal.value, []).append(site)
    for node_id, sites in by_id.items():
        in_order = sorted(sites, key=lambda site: site.line)
        for earlier, later in combinations(in_order, 2):
            if not earlier.place.excludes(later.place):
                message = f"'{node_id}' is the id of line {earlier.line} too"
                yield later.line, "R304", message
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
    own = site.place.function
    if (own, name) in facts.loads:
        return True
    if own is None:
        return False
    readers = [function for function, loaded in facts.loads if loaded == name]
    return any(function is not None for function in readers)


def _unbounded(facts: ScriptFacts) -> Iterator[Found]:
    if any(_is_bound(node) for node in ast.walk(facts.tree)):
        return
    for site in facts.extractions:
        prompt = facts.text(site.arguments.get("prompt"), site.place) or ""
        found = ALL_OF_THEM.search(prompt)
        if found and _extracts_list(facts, site):
            yield site.line, "R306", f"'{_short(prompt[found.start() :])}'"


def _is_bound(node: ast.AST) -> bool:
    """Tell whether syntax limits a number of items."""
    if isinstance(node, ast.Slice):
        return node.upper is not None
    if isinstance(node, ast.Call):
        return called_name(node) in {"range", "islice", "min"}
    if isinstance(node, ast.keyword):
        return node.arg == "max_length"
    return False


def _extracts_list(facts: ScriptFacts, site: CallSite) -> bool:
    """Tell whether the template is a list of things, not only of addresses."""
    template = site.arguments.get("template_class")
    if not isinstance(template, ast.Name):
        return False
    model = facts.classes.get(template.id)
    if model is None:
        return False
    for field in model.body:
        if not isinstance(field, ast.AnnAssign):
            continue
        if not isinstance(field.target, ast.Name):
            continue
        is_list = _LIST_TYPE.search(ast.unparse(field.annotation))
        if is_list and not _NAMED_URLS.search(field.target.id):
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
        description = facts.text(site.arguments.get("desc"), site.place) or ""
        tag = HIDDEN_TAG.match(description)
        if tag is not None:
            yield site.line, "R403", tag[1]


def _numbers_with_units(facts: ScriptFacts) -> Iterator[Found]:
    for model in facts.classes.values():
        for field in model.body:
            if not isinstance(field, ast.AnnAssign):
                continue
            if not isinstance(field.target, ast.Name):
                continue
            described = _description(field)
            is_number = _NUMBERS.search(ast.unparse(field.annotation)) is not None
            if is_number and RANGE_OR_UNIT.search(described):
                yield field.lineno, "R404", f"{field.target.id}: {_short(described)}"


def _description(field: ast.AnnAssign) -> str:
    """Return a field's literal description, empty where it has none."""
    for node in ast.walk(field):
        if not isinstance(node, ast.Call):
            continue
        for keyword in node.keywords:
            if keyword.arg != "description":
                continue
            if isinstance(keyword.value, ast.Constant):
                text = keyword.value.value
                return text if isinstance(text, str) else ""
    return ""


def _clocks(facts: ScriptFacts) -> Iterator[Found]:
    for call, _ in facts.all_calls:
        if called_name(call) in _CLOCKS and isinstance(call.func, ast.Attribute):
            owner = call.func.value
            if isinstance(owner, ast.Attribute):
                last = owner.attr
            else:
                last = getattr(owner, "id", "")
            if last in {"datetime", "date", "pd", "Timestamp", "dt"}:
                yield call.lineno, "R405", ast.unparse(call)


def _name_of(facts: ScriptFacts, site: CallSite) -> str:
    return facts.text(site.arguments.get("id"), site.place) or "the node"


def _short(text: str) -> str:
    """Return a text on one line, cut after 80 characters."""
    line = " ".join(text.split())
    if len(line) <= 80:
        return line
    return f"{line[:79]}\u2026"


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
