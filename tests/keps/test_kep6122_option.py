"""KEP-6122, the option: which values of scale-delay-time a kubelet's configuration may have."""

from __future__ import annotations

import pytest

from nodeward.base.duration import MILLISECOND_NS, SECOND_NS
from nodeward.base.errors import ConfigError
from nodeward.kubelet.config import KubeletSettings, load_text
from tests.keps.ledger import statement
from tests.kubelet.config.test_loading import HEAD, load

ALPHA, EXCLUSIVE = "CPUManagerPolicyAlphaOptions", "InPlacePodVerticalScalingExclusiveCPUs"
BOTH = {ALPHA: True, EXCLUSIVE: True}


def with_delay(text: str, **gates: bool) -> KubeletSettings:
    tree = f"cpuManagerPolicy: static\ncpuManagerPolicyOptions: {{scale-delay-time: '{text}'}}"
    return load_text((HEAD + tree).encode(), "kubelet.yaml", "1.37", gates)


@statement("6122-1")
@statement("6122-U1")
def test_the_static_policy_has_the_option() -> None:
    assert with_delay("5s", **BOTH).cpu_options.scale_delay_ns == 5 * SECOND_NS


@statement("6122-2")
def test_it_is_an_alpha_option_and_refused_as_one() -> None:
    with pytest.raises(ConfigError) as caught:
        with_delay("5s", **{EXCLUSIVE: True})
    words = 'CPU Manager Policy Alpha-level Options not enabled, but option "scale-delay-time" provided'
    assert words in str(caught.value)


@statement("6122-U1")
@statement("6122-3")
@statement("6122-4")
@pytest.mark.parametrize("text", ["-5s", "-1ms", "10.001s", "1m", "-0.001s"])
def test_less_than_nothing_and_more_than_ten_seconds_are_refused(text: str) -> None:
    assert with_delay("0s", **BOTH).cpu_options.scale_delay_ns == 0
    assert with_delay("10s", **BOTH).cpu_options.scale_delay_ns == 10 * SECOND_NS
    with pytest.raises(ConfigError, match="must be from 0s to 10s"):
        with_delay(text, **BOTH)


@statement("6122-5")
@pytest.mark.parametrize("text", ["abc", "5", "", "s"])
def test_seconds_and_milliseconds_are_taken_and_what_is_no_duration_is_refused(text: str) -> None:
    assert with_delay("500ms", **BOTH).cpu_options.scale_delay_ns == 500 * MILLISECOND_NS
    with pytest.raises(ConfigError, match="want 0s to 10s"):
        with_delay(text, **BOTH)


@statement("6122-6")
def test_without_the_option_there_is_no_delay() -> None:
    assert load("cpuManagerPolicy: static").cpu_options.scale_delay_ns == 0
