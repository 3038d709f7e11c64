"""Extractor, verifier and comparisons of values, under the names that eval scripts import."""

from typing import TYPE_CHECKING

from mind2web2.rubric.values import (
    all_different,
    all_given,
    at_least,
    at_most,
    first_items,
    in_domains,
    is_before,
    is_empty,
    is_new,
    number_given,
    same_date,
    same_number,
    same_text,
    same_value,
    shown,
    total,
)
from mind2web2.utils import late_names
from mind2web2.verification.extractor import Extractor, create_evaluator
from mind2web2.verification.run_questions import BinaryEvalResult
from mind2web2.verification.script_access import EvaluatorConfig
from mind2web2.verification.verifier import Verifier

if TYPE_CHECKING:
    from mind2web2.llm_client.base_client import LLMClient

__all__ = [
    "BinaryEvalResult",
    "EvaluatorConfig",
    "Extractor",
    "LLMClient",
    "Verifier",
    "all_different",
    "all_given",
    "at_least",
    "at_most",
    "create_evaluator",
    "first_items",
    "in_domains",
    "is_before",
    "is_empty",
    "is_new",
    "number_given",
    "same_date",
    "same_number",
    "same_text",
    "same_value",
    "shown",
    "total",
]

# The run has the client of a script; the class is loaded for scripts that build one.
__getattr__ = late_names(__name__, {"LLMClient": "mind2web2.llm_client.base_client"})
