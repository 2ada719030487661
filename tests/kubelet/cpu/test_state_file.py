"""The checkpoint text of the CPU manager, where the recorded cases are not at hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.base.cpuset import CPUSet
from nodeward.kubelet.cpu.cpu_state import CPUState
from nodeward.kubelet.cpu.state_file import StateFileError, decode, encode

STATE = CPUState(CPUSet.parse("0,3-15"), {"pod-1": {"c1": CPUSet.of(1, 2)}})
TEXT = (
    '{"policyName":"static","defaultCpuSet":"0,3-15","entries":{"pod-1":{"c1":"1-2"}},"checksum":3431453363,'
    r'"data":"{\"policyName\":\"static\",\"defaultCpuSet\":\"0,3-15\",\"entries\":{\"pod-1\":{\"c1\":\"1-2\"}}}",'
    '"dataChecksum":3548312014}'
)


def test_a_state_is_written_with_the_bytes_and_checksums_of_kubernetes() -> None:
    assert encode(STATE, "static") == TEXT
    assert decode(TEXT, "static") == STATE


def test_an_older_text_without_baselines_counts_what_containers_have_as_promised() -> None:
    text = '{"policyName":"static","defaultCpuSet":"0,3-15","entries":{"pod-1":{"c1":"1-2"}},"checksum":3431453363}'
    read = decode(text, "static", keeps_baselines=True)
    assert read.baselines == read.entries == STATE.entries


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (TEXT.replace("3548312014", "3548312015"), "could not load v4 checkpoint: checkpoint is corrupted"),
        (TEXT.replace(r"0,3-15\"", r"0,3-14\""), "could not load v4 checkpoint: checkpoint is corrupted"),
        ('{"policyName":"static","checksum":7}', "checkpoint is corrupted"),
        ('{"policyName":"none"}', 'configured policy "static" differs from state checkpoint policy "none"'),
        (TEXT[:50], "not JSON: "),
        ("[]", "json: cannot unmarshal array into a checkpoint, want an object"),
        ('{"policyName":"static","defaultCpuSet":"b"}', 'could not parse default CPU set "b": '),
        (
            '{"policyName":"static","entries":{"p":{"c":"5-3"}}}',
            'could not parse cpuset "5-3" for container "c" in pod "p": invalid range "5-3" (5 > 3)',
        ),
    ],
)
def test_a_damaged_text_is_refused_and_named(text: str, why: str) -> None:
    with pytest.raises(StateFileError) as refused:
        decode(text, "static")
    assert str(refused.value).startswith(why)


_CPUS = st.frozensets(st.integers(0, 300), max_size=8).map(CPUSet)
_ENTRIES = st.dictionaries(
    st.text("abc-1", min_size=1), st.dictionaries(st.text("xyz-9", min_size=1), _CPUS, min_size=1), max_size=4
)


@given(
    default=_CPUS,
    entries=_ENTRIES,
    baselines=_ENTRIES,
    pods=st.dictionaries(st.text("abc-1", min_size=1), _CPUS),
)
def test_every_state_is_read_back_as_it_was_written(
    default: CPUSet,
    entries: dict[str, dict[str, CPUSet]],
    baselines: dict[str, dict[str, CPUSet]],
    pods: dict[str, CPUSet],
) -> None:
    state = CPUState(default, entries, baselines or entries, pods, keeps_baselines=True)
    assert decode(encode(state, "static"), "static", keeps_baselines=True, with_pod_level=True) == state


@given(text=st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(str))
def test_no_text_breaks_the_reader(text: str) -> None:
    for whole in (text, f'{{"policyName":"static","entries":{text}}}', f'{{"data":{text}}}'):
        with pytest.raises(StateFileError):
            decode(whole, "other", keeps_baselines=True, with_pod_level=True)
