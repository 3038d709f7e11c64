"""Evaluations on several machines: a Ray cluster, with an actor on each of its nodes."""
