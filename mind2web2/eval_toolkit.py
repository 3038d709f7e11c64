"""Extractor, verifier and comparisons of values, under the names that eval scripts import."""

from mind2web2.llm_client.base_client import LLMClient
from mind2web2.rubric.values import (
    all_different,
    all_given,
    first_items,
    is_empty,
    is_new,
    same_date,
    same_number,
    same_text,
    same_value,
    shown,
    total,
)
from mind2web2.rubric.verdicts import BlindQuestion
from mind2web2.verification.config import EvaluatorConfig
from mind2web2.verification.extractor import Extractor, create_evaluator
from mind2web2.verification.messages import BinaryEvalResult
from mind2web2.verification.verifier import Verifier

__all__ = [
    "BinaryEvalResult",
    "BlindQuestion",
    "EvaluatorConfig",
    "Extractor",
    "LLMClient",
    "Verifier",
    "all_different",
    "all_given",
    "create_evaluator",
    "first_items",
    "is_empty",
    "is_new",
    "same_date",
    "same_number",
    "same_text",
    "same_value",
    "shown",
    "total",
]
