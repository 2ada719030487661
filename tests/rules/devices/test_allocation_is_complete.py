"""Random pools and claims: an allocation is right, and is found whenever trying all combinations finds one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeward.api.resource_v1 import ResourceClaim
from nodeward.base.quantity import Quantity
from nodeward.rules.devices.allocator import Allocated
from tests.rounds import rounds, soak
from tests.rules.devices.allocating import allocate, claim, device_class, exactly, slice_of

COLORS = ("red", "blue")


@dataclass(frozen=True)
class Unit:
    """A device: one of two colors, a number, counters it takes from the pool's 4, and memory if it is shared."""

    name: str
    color: str
    number: int
    counters: int
    shared_memory: int

    def described(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "name": self.name,
            "attributes": {"color": {"string": self.color}, "example.com/number": {"int": self.number}},
        }
        if self.counters:
            taken = {"slots": {"value": str(self.counters)}}
            found["consumesCounters"] = [{"counterSet": "card", "counters": taken}]
        if self.shared_memory:
            found["allowMultipleAllocations"] = True
            policy = {"default": "1", "validRange": {"min": "1", "step": "1"}}
            found["capacity"] = {"memory": {"value": str(self.shared_memory), "requestPolicy": policy}}
        return found


@dataclass(frozen=True)
class Wish:
    """A request: so many devices of a color (any if empty), each with so much memory if it is shared."""

    name: str
    color: str
    count: int
    memory: int

    def described(self, kind: str = "exactly") -> dict[str, Any]:
        selectors = [{"cel": {"expression": f"color == {self.color}"}}] if self.color else []
        capacity = {"capacity": {"requests": {"memory": str(self.memory)}}} if self.memory else {}
        full = exactly(self.name, self.count, selectors=selectors, **capacity)
        return full if kind == "exactly" else {"name": self.name, **full["exactly"]}


@dataclass(frozen=True)
class Wanted:
    """A claim: per request its alternatives, and the attribute in which all its devices match or differ."""

    requests: tuple[tuple[Wish, ...], ...]
    constraint: str

    def described(self, name: str) -> ResourceClaim:
        requests = [
            one[0].described()
            if len(one) == 1
            else {"name": f"q{index}", "firstAvailable": [each.described("sub") for each in one]}
            for index, one in enumerate(self.requests)
        ]
        found = [{self.constraint: "example.com/number"}] if self.constraint else []
        return claim(*requests, name=name, constraints=found)


UNITS = st.builds(
    lambda parts: [Unit(f"d{number}", *each) for number, each in enumerate(parts)],
    st.lists(
        st.tuples(
            st.sampled_from(COLORS), st.integers(0, 2), st.integers(0, 3), st.sampled_from((0, 0, 0, 2, 3))
        ),
        min_size=1,
        max_size=5,
    ),
)
WISHES = st.tuples(st.sampled_from(("", *COLORS)), st.integers(1, 2), st.sampled_from((0, 0, 0, 1, 2)))


def _wanted(parts: Sequence[Sequence[tuple[str, int, int]]], constraint: str) -> Wanted:
    return Wanted(
        tuple(
            tuple(Wish(f"r{first}{second}", *each) for second, each in enumerate(one))
            for first, one in enumerate(parts)
        ),
        constraint,
    )


CLAIMS = st.lists(
    st.builds(
        _wanted,
        st.lists(st.lists(WISHES, min_size=1, max_size=2), min_size=1, max_size=2),
        st.sampled_from(("", "matchAttribute", "distinctAttribute")),
    ),
    min_size=1,
    max_size=2,
)

#: One claim's choice: per request the wish and its devices.
Given = Sequence[tuple[Wish, Sequence[Unit]]]


def everything(wanted: Sequence[Wanted], units: Sequence[Unit]) -> Iterator[list[Given]]:
    """Every way to give the claims as many devices as they want, right or wrong."""
    per_claim = [
        product(
            *(
                [(wish, sets) for wish in one for sets in combinations(units, wish.count)]
                for one in each.requests
            )
        )
        for each in wanted
    ]
    for choice in product(*per_claim):
        yield [*choice]


def is_right(wanted: Sequence[Wanted], given: Sequence[Given]) -> bool:
    """Whether nothing is given twice, everything is as wished for, constraints hold and nothing is overdrawn."""
    whole: Counter[str] = Counter()
    memory: Counter[Unit] = Counter()
    used: dict[Unit, None] = {}
    for each, parts in zip(wanted, given, strict=True):
        numbers = [unit.number for _, units in parts for unit in units]
        if each.constraint == "matchAttribute" and len({*numbers}) > 1:
            return False
        if each.constraint == "distinctAttribute" and len({*numbers}) < len(numbers):
            return False
        for wish, units in parts:
            for unit in units:
                if wish.color and unit.color != wish.color:
                    return False
                used[unit] = None
                if unit.shared_memory:
                    memory[unit] += wish.memory or 1
                elif wish.memory:
                    return False
                else:
                    whole[unit.name] += 1
    return (
        all(count == 1 for count in whole.values())
        and all(amount <= unit.shared_memory for unit, amount in memory.items())
        and sum(unit.counters for unit in used) <= 4
    )


@soak
@given(UNITS, CLAIMS)
@settings(max_examples=rounds(150, 5000), deadline=None)
def test_an_allocation_is_right_and_found_whenever_there_is_one(
    units: list[Unit], wanted: list[Wanted]
) -> None:
    pool = [
        slice_of([each.described() for each in units], count=2),
        slice_of(
            name="s2", count=2, sharedCounters=[{"name": "card", "counters": {"slots": {"value": "4"}}}]
        ),
    ]
    claims = [each.described(f"c{number}") for number, each in enumerate(wanted)]
    answer = allocate(claims, pool, classes=[device_class()])

    exists = any(is_right(wanted, given) for given in everything(wanted, units))
    assert isinstance(answer, Allocated) == exists
    if isinstance(answer, Allocated):
        assert is_right(wanted, read(wanted, answer, {each.name: each for each in units}))


def read(wanted: Sequence[Wanted], answer: Allocated, units: dict[str, Unit]) -> list[Given]:
    """What the results say each claim got; a wish with another number of devices than it asks for is refused."""
    found: list[Given] = []
    for each, result, chosen in zip(wanted, answer.results, answer.alternatives, strict=True):
        parts = []
        for one, index in zip(each.requests, chosen, strict=True):
            mine = [
                entry
                for entry in result.devices.results
                if entry.request.rpartition("/")[2] == one[index].name
            ]
            assert len(mine) == one[index].count
            for entry in mine:
                is_shared = bool(units[entry.device].shared_memory)
                assert (entry.share_id is not None) == is_shared
                amount = Quantity.of_int(one[index].memory or 1)
                assert entry.consumed_capacity == ({"memory": amount} if is_shared else {})
            parts.append((one[index], [units[entry.device] for entry in mine]))
        assert sum(len(got) for _, got in parts) == len(result.devices.results)
        found.append(parts)
    return found
