"""What was remembered of a change of owners is what would be worked out anew."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.apply.managed import Handovers, update_managed
from nodeward.api.core_v1.cluster import ConfigMap
from nodeward.api.meta import ManagedFieldsEntry
from nodeward.api.schema import schema_of

SCHEMA = schema_of(ConfigMap)
WRITES = st.tuples(
    st.sampled_from(("one", "two", "three")),
    st.dictionaries(st.sampled_from("abcd"), st.sampled_from("xy"), max_size=4),
    st.sampled_from(("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2025-12-31T00:00:00Z")),
)


def _tree(data: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data}


@given(st.lists(WRITES, min_size=2, max_size=12))
def test_a_memory_changes_no_answer(writes: list[tuple[str, dict[str, str], str]]) -> None:
    memory = Handovers(most=3)
    for _ in range(2):
        existing: list[ManagedFieldsEntry] = []
        before: dict[str, Any] | None = None
        for manager, data, now in writes:
            after = _tree(data)
            plain, remembered = (
                update_managed(
                    after,
                    before,
                    SCHEMA,
                    manager=manager,
                    api_version="v1",
                    now=now,
                    existing=existing,
                    memory=each,
                )
                for each in (None, memory)
            )
            assert [(e.manager, e.time, bytes(e.fields_v1 or b"")) for e in remembered] == [
                (e.manager, e.time, bytes(e.fields_v1 or b"")) for e in plain
            ]
            existing, before = plain, after
