"""The strategy of priority classes: their generation stays 1, since no field that counts may change."""

from __future__ import annotations

from typing import Any, ClassVar

from nodeward.apiserver.resources.strategy import Strategy


class PriorityClasses(Strategy):
    counts_generations: ClassVar[bool] = True

    def count_generation(self, new: Any, old: Any) -> None:
        new.metadata.generation = old.metadata.generation
