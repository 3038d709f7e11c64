"""Text rules for eval scripts: what their syntax shows to be wrong, or to let wrong answers pass."""

from __future__ import annotations

import ast
import builtins
import symtable
import warnings
from collections.abc import Callable, Iterator
from itertools import combinations

from mind2web2.authoring.findings import ABOUT_THE_ANSWER
from mind2web2.authoring.script_facts import (
    CUSTOM,
    INNER,
    CallSite,
    ClaimSite,
    Function,
    Place,
    ScriptFacts,
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
            # Ignore warnings about the script's own literals, such as "\d".
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
        text = facts.text(claim.claim, claim.place) or ""
        # A claim without a value from the answer does not say anything that the answer states.
        if "{}" in text and not ABOUT_THE_ANSWER.search(text):
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
    """Return names in an expression, and in what its names stand for, a few steps deep."""
    names = names_in(expression)
    waiting = set(names)
    for _ in range(4):
        found: set[str] = set()
        for name in waiting:
            for value in facts.assigned.get((place.function, name), ()):
                found |= names_in(value)
            function = facts.functions.get(name)
            found |= names_in(function) if function is not None else set()
        waiting = found - names
        names |= found
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


def _name_of(facts: ScriptFacts, site: CallSite) -> str:
    return facts.text(site.arguments.get("id"), site.place) or "the node"


def _short(text: str) -> str:
    """Return a text on one line, cut after 80 characters."""
    line = " ".join(text.split())
    if len(line) <= 80:
        return line
    return f"{line[:79]}\u2026"


_CHECKS: tuple[Callable[[ScriptFacts], Iterator[Found]], ...] = (
    _sourceless_claims,
    _ungated_sources,
    _no_page,
    _repeated_tests,
    _repeated_ids,
    _unjudged_leaves,
)
