"""Rubric files written, shown and imported; rehearsals; new tasks."""
