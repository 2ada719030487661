"""Options of the CPU manager: the gates they need and the words they are refused with."""

from __future__ import annotations

import pytest

from nodeward.base.duration import MILLISECOND_NS, SECOND_NS
from nodeward.base.errors import ConfigError
from nodeward.base.problems import Problems
from nodeward.features.gates import Gates
from nodeward.kubelet.config.cpu_options import CpuManagerOptions, read_cpu_options

ALPHA = "CPUManagerPolicyAlphaOptions=true"
EXCLUSIVE = "InPlacePodVerticalScalingExclusiveCPUs=true"


def read(options: dict[str, str], gates: str = "", policy: str = "static") -> CpuManagerOptions:
    problems = Problems("k")
    found = read_cpu_options(policy, options, Gates.of("1.37", gates), problems)
    problems.settle()
    return found


def test_stable_and_beta_options_need_nothing() -> None:
    found = read(
        {"full-pcpus-only": "true", "strict-cpu-reservation": "1", "distribute-cpus-across-numa": "false"}
    )
    assert found == CpuManagerOptions(full_pcpus_only=True, strict_reservation=True)


@pytest.mark.parametrize(
    ("options", "gates", "what"),
    [
        (
            {"align-by-socket": "true"},
            "",
            'CPU Manager Policy Alpha-level Options not enabled, but option "align-by-socket" provided',
        ),
        (
            {"scale-delay-time": "5s"},
            EXCLUSIVE,
            'CPU Manager Policy Alpha-level Options not enabled, but option "scale-delay-time" provided',
        ),
        (
            {"distribute-cpus-across-numa": "true"},
            "CPUManagerPolicyBetaOptions=false",
            'CPU Manager Policy Beta-level Options not enabled, but option "distribute-cpus-across-numa" provided',
        ),
        ({"full-pcpu-only": "true"}, "", 'unknown CPU Manager Policy option: "full-pcpu-only"'),
        (
            {"full-pcpus-only": "yes"},
            "",
            'bad value for option "full-pcpus-only": strconv.ParseBool: parsing "yes"',
        ),
        (
            {"full-pcpus-only": "true", "distribute-cpus-across-cores": "true"},
            ALPHA,
            "static policy options full-pcpus-only and distribute-cpus-across-cores can not be used at the same time",
        ),
        (
            {"scale-delay-time": "5s"},
            ALPHA,
            "must be 0s unless feature gate InPlacePodVerticalScalingExclusiveCPUs",
        ),
        ({"scale-delay-time": "-5s"}, f"{ALPHA},{EXCLUSIVE}", "-5s must be from 0s to 10s"),
        ({"scale-delay-time": "10.001s"}, f"{ALPHA},{EXCLUSIVE}", "must be from 0s to 10s"),
        ({"scale-delay-time": "5"}, f"{ALPHA},{EXCLUSIVE}", 'missing unit in duration "5"'),
    ],
)
def test_what_cannot_be_is_told(options: dict[str, str], gates: str, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(options, gates)
    assert what in str(caught.value)


def test_a_delay_from_nothing_to_ten_seconds_is_taken() -> None:
    both = f"{ALPHA},{EXCLUSIVE}"
    assert read({"scale-delay-time": "500ms"}, both).scale_delay_ns == 500 * MILLISECOND_NS
    assert read({"scale-delay-time": "10s"}, both).scale_delay_ns == 10 * SECOND_NS
    assert read({"scale-delay-time": "0s"}, ALPHA).scale_delay_ns == 0
    assert read({}).scale_delay_ns == 0


def test_options_without_a_policy_are_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"None policy: received unsupported options=map\[full-pcpus-only:true\]"
    ):
        read({"full-pcpus-only": "true"}, policy="none")
