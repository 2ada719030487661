"""Few first, more when that went well."""

from __future__ import annotations

import pytest

from nodeward.api.errors import bad_request
from nodeward.base.errors import WorldError
from nodeward.controllers.pods.slow_start import in_growing_batches
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual


@pytest.mark.parametrize(("count", "batches"), [(0, []), (1, [1]), (3, [1, 2]), (10, [1, 2, 4, 3])])
def test_batches_double_as_long_as_all_goes_well(count: int, batches: list[int]) -> None:
    async def main(clock: VirtualClock) -> None:
        sizes: list[int] = []
        under_way = 0

        async def act() -> None:
            nonlocal under_way
            under_way += 1
            if under_way == 1:
                sizes.append(0)
            sizes[-1] += 1
            await clock.yield_now()
            under_way -= 1

        assert await in_growing_batches(count, act) == (count, None)
        assert sizes == batches

    run_virtual(main)


def test_after_a_failure_the_batch_is_finished_and_no_other_begun() -> None:
    async def main(clock: VirtualClock) -> None:
        tries = 0

        async def act() -> None:
            nonlocal tries
            tries += 1
            if tries == 2:
                raise bad_request("no")
            if tries > 3:
                raise WorldError("gone")

        outcome = await in_growing_batches(100, act)
        assert (outcome.done, str(outcome.error), tries) == (2, "no", 3)

    run_virtual(main)
