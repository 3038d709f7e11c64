"""The rubric tree, under the name that eval scripts import."""

from mind2web2.rubric.node import AggregationStrategy, VerificationNode

__all__ = ["AggregationStrategy", "VerificationNode"]
