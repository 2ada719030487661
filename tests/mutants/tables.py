"""Every mutant there is: one table per KEP, joined here. `runner.py` and the tests of the tables read it."""

from __future__ import annotations

from typing import Final

from tests.mutants import (
    kep5233,
    kep5328,
    kep5471,
    kep5945,
    kep5945_kubelet,
    kep6122,
    kep6122_downward,
    kep6122_resize,
)
from tests.mutants.mutant import Mutant, TableError

TABLES: Final[dict[str, tuple[Mutant, ...]]] = {
    "5328": kep5328.MUTANTS,
    "5471": kep5471.MUTANTS,
    "5233": kep5233.MUTANTS,
    "5945": (*kep5945.MUTANTS, *kep5945_kubelet.MUTANTS),
    "6122": (*kep6122.MUTANTS, *kep6122_downward.MUTANTS, *kep6122_resize.MUTANTS),
}


def chosen(names: list[str]) -> list[Mutant]:
    """Return the mutants of these names or KEP numbers; all of them where nothing is named."""
    everything = [mutant for table in TABLES.values() for mutant in table]
    by_name = {mutant.name: mutant for mutant in everything}
    if len(by_name) != len(everything):
        twice = sorted(name for name in by_name if sum(each.name == name for each in everything) > 1)
        raise TableError(f"two mutants have one name: {', '.join(twice)}")
    found: dict[str, Mutant] = {}
    for name in names or list(TABLES):
        if name in TABLES:
            found.update((mutant.name, mutant) for mutant in TABLES[name])
        elif name in by_name:
            found[name] = by_name[name]
        else:
            raise TableError(f"there is no mutant and no KEP {name!r}; --list prints what there is")
    return list(found.values())
