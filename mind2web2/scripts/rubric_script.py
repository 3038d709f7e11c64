"""The eval script that equals a rubric file: it runs in its place, and authors go on from it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from keyword import iskeyword
from pathlib import Path
from string import Formatter

from mind2web2.scripts.rubric_file import (
    ANSWER_EXTRACTION,
    FROM_ANSWER,
    ITEM,
    NUMBER,
    Condition,
    Equals,
    FieldSpec,
    FieldType,
    Limit,
    RubricFile,
    RubricNode,
    field_type,
    is_address,
)
from mind2web2.scripts.rubric_reading import ReadRubric, placeholders

_TYPES: Mapping[FieldType, str] = {
    "text": "str | None = None",
    "number": "float | None = None",
    "integer": "int | None = None",
    "yes_no": "bool | None = None",
    "urls": "list[str] = Field(default_factory=list)",
}
_COMPARISONS = {
    "exact": "same_value",
    "text": "same_text",
    "number": "same_number",
    "date": "same_date",
}
_TOOLKIT = (
    "all_different",
    "all_given",
    "at_least",
    "at_most",
    "first_items",
    "in_domains",
    "is_before",
    "is_new",
    "number_given",
    "same_date",
    "same_number",
    "same_text",
    "same_value",
    "shown",
    "total",
)

_LINE_LENGTH = 110
_HEAD = '''"""The eval script of task {task}, written from its rubric file."""

import logging

from pydantic import BaseModel, Field

from mind2web2 import CacheFileSys, Evaluator, LLMClient
from mind2web2.eval_runner import DualSemaphore
{toolkit}from mind2web2.verification_tree import AggregationStrategy

TASK_ID = "{task}"
TASK_DESCRIPTION = {question}
'''
_EVALUATE = '''

async def evaluate_answer(
    client: LLMClient,
    answer: str,
    agent_name: str,
    answer_name: str,
    cache: CacheFileSys,
    semaphore: DualSemaphore,
    logger: logging.Logger,
    model: str = "o4-mini",
) -> dict:
    """Score one answer."""
    evaluator = Evaluator()
    root = evaluator.initialize(
        task_id=TASK_ID,
        strategy=AggregationStrategy.{strategy},
        agent_name=agent_name,
        answer_name=answer_name,
        client=client,
        task_description=TASK_DESCRIPTION,
        answer=answer,
        global_cache=cache,
        global_semaphore=semaphore,
        logger=logger,
        default_model=model,
    )
'''


def script_source(content: bytes, path: Path) -> bytes:
    """Return the script of a file with this content.

    Raises:
        YamlFileError: it is not a proper rubric file.
    """
    return script_of(ReadRubric.parsed(content, path)).encode()


def script_of(read: ReadRubric) -> str:
    """Return the text of the script that is equal to a rubric file."""
    rubric = read.rubric
    body = _Body(rubric).text()
    used = [name for name in _TOOLKIT if re.search(rf"\b{name}\(", body)]
    toolkit = f"from mind2web2.eval_toolkit import {', '.join(used)}\n" if used else ""
    head = _HEAD.format(
        task=rubric.task, toolkit=toolkit, question=_long_text(rubric.question.strip())
    )
    return head + body


def _long_text(text: str) -> str:
    """Return a text as a literal, over several lines where it has them."""
    lines = text.split("\n")
    if len(lines) == 1:
        return _literal(text)
    return "\n".join(['"""', *map(_escape, lines), '""".strip()'])


class _Body:
    """Writes templates, prompts and the evaluation."""

    def __init__(self, rubric: RubricFile) -> None:
        self._rubric = rubric
        self._classes: dict[str, str] = {}
        self._names: set[str] = set(_TOOLKIT) | {
            "evaluator",
            "root",
            "client",
            "answer",
            "agent_name",
            "answer_name",
            "cache",
            "semaphore",
            "logger",
            "model",
            "logging",
            ITEM,
            "items",
            NUMBER,
            "values",
            "any",
            "enumerate",
            "EXTRACT_ANSWER",
        }
        self._readings: dict[str, str] = {}

    def text(self) -> str:
        """Return all behind the constants."""
        asked = {name: spec for name, spec in self._rubric.extract.items() if spec.page is None}
        parts = []
        calls = []
        if asked:
            parts += self._template("Answer", asked, "What the answer says.")
            parts.append(f"\n\nEXTRACT_ANSWER = {_long_text(_prompt(asked))}\n")
            calls.append(
                _extract_call("values", "EXTRACT_ANSWER", "Answer", ANSWER_EXTRACTION, None)
            )
        for name, spec in self._rubric.extract.items():
            if spec.page is None:
                continue
            class_name = self._class_name(name)
            parts += self._template(class_name, spec.fields, "What the page says.")
            constant = self._name(f"EXTRACT_{name.upper()}")
            parts.append(f"\n\n{constant} = {_long_text(_page_prompt(spec))}\n")
            self._readings[name] = reading = self._name(f"{name}_on_page")
            calls.append(_extract_call(reading, constant, class_name, name, spec.page))
        parts.append(_EVALUATE.format(strategy=self._rubric.root.strategy.upper()))
        parts += calls
        parts += self._children(self._rubric.root.children, "root", None, "    ")
        parts.append("    return evaluator.get_summary()\n")
        return "".join(parts)

    def _template(self, name: str, fields: Mapping[str, FieldSpec], promise: str) -> list[str]:
        """Return the class of a group, after those of its groups."""
        before, own = [], []
        for field, spec in fields.items():
            if not spec.fields:
                own.append(f"    {field}: {_TYPES[field_type(field, spec)]}\n")
                continue
            class_name = self._class_name(field)
            before += self._template(
                class_name, spec.fields, f"Of the answer: {' '.join(spec.ask.split())}."
            )
            if spec.list is None:
                own.append(f"    {field}: {class_name} = Field(default_factory={class_name})\n")
            else:
                self._classes[field] = class_name
                own.append(f"    {field}: list[{class_name}] = Field(default_factory=list)\n")
        promise = promise.replace("\\", "/").replace('"', "'")
        return [*before, f'\n\nclass {name}(BaseModel):\n    """{promise}"""\n\n', *own]

    def _class_name(self, field: str) -> str:
        return self._name(
            "".join(part[:1].upper() + part[1:] for part in field.split("_")) + "Part"
        )

    def _name(self, wanted: str) -> str:
        # As Python reads names: the sign for "squared" is none of them, its digit is.
        plain = unicodedata.normalize("NFKC", wanted.replace("{number}", ""))
        name = re.sub(r"[\W_]+", "_", plain).strip("_") or "node"
        name = name if name[0].isalpha() else f"node_{name}"
        free, number = name, 2
        while free in self._names or iskeyword(free):
            free, number = f"{name}_{number}", number + 1
        self._names.add(free)
        return free

    def _children(
        self,
        nodes: tuple[RubricNode, ...],
        parent: str,
        inside: str | None,
        indent: str,
    ) -> Iterator[str]:
        for node in nodes:
            if node.for_each is None:
                yield from self._node(node, parent, inside, indent)
                continue
            yield f"{indent}items = {self._items(node.for_each)}\n"
            yield f"{indent}for number, item in enumerate(items, start=1):\n"
            yield from self._node(node, parent, node.for_each, indent + "    ")

    def _items(self, name: str) -> str:
        """Return the items of a list that count."""
        count = self._rubric.extract[name].list
        return f"first_items(values.{name}, {count}, {self._classes[name]})"

    def _node(
        self, node: RubricNode, parent: str, inside: str | None, indent: str
    ) -> Iterator[str]:
        # Names of classes and constants have capitals.
        name = self._name(node.id.lower())
        common = self._common(node, parent, inside)
        if node.children:
            kind = "sequential" if node.strategy == "sequential" else "parallel"
            yield _call(indent, f"{name} = evaluator.add_{kind}", common)
            yield from self._children(node.children, name, inside, indent)
        elif node.claim is not None:
            yield _call(indent, f"{name} = evaluator.add_leaf", common)
            yield from self._verification(node, name, inside, indent)
        else:
            arguments = {"result": " and ".join(self._tests(node, inside))}
            arguments |= common
            if node.equals is not None:
                arguments["values"] = self._comparison_evidence(node.equals, inside)
            elif node.limit is not None:
                arguments["values"] = f'{{"found": {self._bounded_value(node.limit)}}}'
            yield _call(indent, "evaluator.add_custom_node", arguments)

    def _common(self, node: RubricNode, parent: str, inside: str | None) -> dict[str, str]:
        """Return the arguments that all nodes have."""
        arguments = {
            "id": self._text(node.id, inside),
            "desc": self._text(node.desc, inside),
            "parent": parent,
            "critical": repr(node.critical),
        }
        if node.tags:
            arguments["tags"] = f"[{', '.join(map(_literal, node.tags))}]"
        return arguments

    def _verification(
        self, node: RubricNode, name: str, inside: str | None, indent: str
    ) -> Iterator[str]:
        arguments = self._claim_arguments(node, name, inside)
        if node.after:
            nodes = (f"evaluator.find_node({self._text(each, inside)})" for each in node.after)
            arguments["extra_prerequisites"] = f"[{', '.join(nodes)}]"
        if node.votes is not None:
            arguments |= {"majority_vote": "True", "num_trials": repr(node.votes)}
        yield _call(indent, "await evaluator.verify", arguments)

    def _claim_arguments(self, node: Condition, name: str, inside: str | None) -> dict[str, str]:
        """Return the arguments of a claim, whose leaf may be None."""
        claim = node.claim or ""
        paths = [path for path in placeholders(claim) if path != NUMBER]
        values = {path: self._value(path) for path in paths}
        arguments = {"claim": self._text(claim, inside), "node": name}
        if FROM_ANSWER not in node.sources:
            fields = [path for path in node.sources if not is_address(path)]
            sources = {path: self._addresses(path, node) for path in fields}
            values |= sources
            fixed = [_literal(path) for path in node.sources if is_address(path)]
            listed = [*(f"*{value}" for value in sources.values()), *fixed]
            arguments["sources"] = f"({', '.join(listed)},)"
        if inside is not None:
            values.setdefault(ITEM, ITEM)
        if values:
            given = ", ".join(f"{_literal(path)}: {value}" for path, value in values.items())
            arguments["required"] = f"{{{given}}}"
        if node.instruction is not None:
            arguments["additional_instruction"] = self._text(node.instruction, inside)
        return arguments

    def _addresses(self, path: str, node: Condition) -> str:
        """Return the addresses of a field that count."""
        value = self._value(path)
        if not node.domain:
            return value
        return f"in_domains({value}, [{', '.join(map(_literal, node.domain))}])"

    def _tests(self, node: RubricNode, inside: str | None) -> Iterator[str]:
        """Return the conditions of a leaf that is not a claim."""
        if inside is not None and not node.present:
            yield f"all_given({ITEM})"
        yield from self._conditions(node, inside)
        if node.distinct is not None:
            first, _, field = node.distinct.partition(".")
            if first == ITEM:
                yield f"is_new(item.{field}, [other.{field} for other in items[: number - 1]])"
            else:
                yield f"all_different(each.{field} for each in {self._items(first)})"
        if node.any_of:
            alternatives = (self._alternative(each, inside) for each in node.any_of)
            yield f"any([{', '.join(alternatives)}])"

    def _alternative(self, each: Condition, inside: str | None) -> str:
        if each.claim is None:
            return " and ".join(self._conditions(each, inside))
        asked = self._claim_arguments(each, "None", inside)
        given = ", ".join(f"{name}={value}" for name, value in asked.items())
        return f"await evaluator.verify({given})"

    def _conditions(self, node: Condition, inside: str | None) -> Iterator[str]:
        """Return the conditions that code decides."""
        if node.present:
            given = [self._present(path, node, inside) for path in node.present]
            yield f"all_given({', '.join(given)})"
        if node.equals is not None:
            yield self._comparison(node.equals, inside)
        if node.limit is not None:
            yield from self._bounds(node.limit, inside)

    def _present(self, path: str, node: Condition, inside: str | None) -> str:
        if path == ITEM:
            return path
        is_urls = self._rubric.type_at(path, inside) == "urls"
        return self._addresses(path, node) if is_urls else self._value(path)

    def _bounded_value(self, limit: Limit) -> str:
        """Return the number or day that has bounds."""
        if limit.count_of is not None:
            return f"number_given(values.{limit.count_of})"
        if limit.sum_of:
            return f"total([{', '.join(map(self._value, limit.sum_of))}])"
        return self._value(limit.field or "")

    def _bounds(self, limit: Limit, inside: str | None) -> Iterator[str]:
        value = self._bounded_value(limit)
        for key, bound in limit.numbers.items():
            yield f"{key}({value}, {self._bound(bound, inside)})"
        for key, bound in limit.days.items():
            first, second = value, self._bound(bound, inside)
            if key == "after":
                first, second = second, first
            yield f"is_before({first}, {second})"

    def _bound(self, bound: float | str, inside: str | None) -> str:
        """Return a bound: the value of a field, or a literal."""
        if not isinstance(bound, str):
            return repr(bound)
        try:
            self._rubric.field_at(bound, inside)
        except ValueError:
            return _literal(bound)
        return self._value(bound)

    def _comparison(self, equals: Equals, inside: str | None) -> str:
        within = f", within={equals.within!r}" if equals.within else ""
        values = f"{self._value(equals.field)}, {self._expected_value(equals, inside)}{within}"
        return f"{_COMPARISONS[equals.compare]}({values})"

    def _expected_value(self, equals: Equals, inside: str | None) -> str:
        if equals.sum_of:
            return f"total([{', '.join(map(self._value, equals.sum_of))}])"
        if equals.same_as is not None:
            return self._value(equals.same_as)
        return repr(self._rubric.expected(equals, inside))

    def _comparison_evidence(self, equals: Equals, inside: str | None) -> str:
        """Return what the comparison's evidence shows."""
        value, wanted = self._value(equals.field), self._expected_value(equals, inside)
        return f'{{{_literal(equals.field)}: {value}, "expected": {wanted}}}'

    def _value(self, path: str) -> str:
        first, _, rest = path.partition(".")
        if first == ITEM:
            return path
        reading = self._readings.get(first)
        if reading is None:
            return f"values.{path}"
        return f"{reading}.{rest}" if rest else reading

    def _text(self, template: str, inside: str | None) -> str:
        """Return a text with its placeholders as an expression."""
        parts = list(Formatter().parse(template))
        if all(path is None for _, path, _, _ in parts):
            return _literal("".join(text for text, _, _, _ in parts))
        pieces = []
        for text, path, _, _ in parts:
            pieces.append(_escape(text).replace("{", "{{").replace("}", "}}"))
            if path is not None:
                pieces.append(
                    f"{{{NUMBER if path == NUMBER else self._placeholder(path, inside)}}}"
                )
        return f'f"{"".join(pieces)}"'

    def _placeholder(self, path: str, inside: str | None) -> str:
        value = self._value(path)
        is_text = self._rubric.type_at(path, inside) == "text"
        return value if is_text else f"shown({value})"


def _literal(text: str) -> str:
    return f'"{_escape(text)}"'


def _escape(text: str) -> str:
    """Return a text as it stands between double quotes."""
    escapes = {"\\": "\\\\", '"': '\\"'}
    return "".join(
        escapes.get(char, char if char.isprintable() else repr(char)[1:-1]) for char in text
    )


def _extract_call(variable: str, prompt: str, template: str, name: str, page: str | None) -> str:
    arguments = {
        "prompt": prompt,
        "template_class": template,
        "extraction_name": _literal(name),
    }
    if page is not None:
        arguments["source"] = _literal(page)
    return _call("    ", f"{variable} = await evaluator.extract", arguments)


def _call(indent: str, function: str, arguments: Mapping[str, str]) -> str:
    """Return a call as a statement: on one line, or an argument a line."""
    given = [f"{name}={value}" for name, value in arguments.items()]
    line = f"{indent}{function}({', '.join(given)})\n"
    if len(line) <= _LINE_LENGTH:
        return line
    return "".join(
        [
            f"{indent}{function}(\n",
            *(f"{indent}    {each},\n" for each in given),
            f"{indent})\n",
        ]
    )


def _prompt(fields: Mapping[str, FieldSpec]) -> str:
    lines = "\n".join(_field_lines(fields, ""))
    return (
        "Extract what the answer finally says, as it says it. Leave empty what it does not say.\n"
        f"For addresses (URLs), list those that the answer cites, in its order.\n{lines}"
    )


def _page_prompt(spec: FieldSpec) -> str:
    lines = "\n".join(_field_lines(spec.fields, ""))
    return f"Extract from the page: {spec.ask.strip()}.\nLeave empty what it does not say.\n{lines}"


def _field_lines(fields: Mapping[str, FieldSpec], indent: str) -> Iterator[str]:
    for name, spec in fields.items():
        kind = " (a list; for each item:)" if spec.list is not None else ""
        yield f"{indent}- {name}: {' '.join(spec.ask.split())}{kind}"
        yield from _field_lines(spec.fields, indent + "  ")
