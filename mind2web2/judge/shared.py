"""Judgments that several machines share, as the hook ``stores`` opens them."""

from __future__ import annotations

from abc import ABC, abstractmethod

from mind2web2.judge.store import JudgmentStore


class SharedStore(JudgmentStore, ABC):
    """An agent's own judgments, and those of a store that other machines use at the same time.

    The shared store gets the own judgments when it is opened.
    """

    @abstractmethod
    def copy_all(self) -> tuple[int, int]:
        """Copy all shared judgments to the own file.

        Return how many are new there, and how many exist.
        """
