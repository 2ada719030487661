"""Priority classes have a first generation and never a second: nothing in them that counts may change."""

from __future__ import annotations

from typing import Any, ClassVar

from nodeward.apiserver.resources.strategy import Strategy


class PriorityClasses(Strategy):
    counts_generations: ClassVar[bool] = True

    def count_generation(self, new: Any, old: Any) -> None:
        new.metadata.generation = old.metadata.generation
