"""Options of the CPU and topology managers: which exist, which gate each needs, which do not go together.

Names and messages are upstream's; `scale-delay-time` is KEP-6122's and an alpha option like the others. Out comes a
value for the CPU manager; what a machine must be like for an option is checked where the machine is known.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nodeward.base.duration import SECOND_NS, DurationError, parse_duration
from nodeward.base.problems import Problems
from nodeward.features.gates import Gates
from nodeward.kubelet.config.reading import nearest

LOG: Final = logging.getLogger(__name__)

FULL_PCPUS_ONLY: Final = "full-pcpus-only"
ACROSS_NUMA: Final = "distribute-cpus-across-numa"
ALIGN_BY_SOCKET: Final = "align-by-socket"
ACROSS_CORES: Final = "distribute-cpus-across-cores"
STRICT_RESERVATION: Final = "strict-cpu-reservation"
UNCORE_CACHE: Final = "prefer-align-cpus-by-uncorecache"
SCALE_DELAY: Final = "scale-delay-time"
LONGEST_SCALE_DELAY: Final = 10 * SECOND_NS

_ALPHA: Final = (ALIGN_BY_SOCKET, ACROSS_CORES, SCALE_DELAY)
_BETA: Final = (ACROSS_NUMA,)
_STABLE: Final = (FULL_PCPUS_ONLY, STRICT_RESERVATION, UNCORE_CACHE)
_APART: Final = (
    (FULL_PCPUS_ONLY, ACROSS_CORES),
    (ACROSS_NUMA, ACROSS_CORES),
    (UNCORE_CACHE, ACROSS_CORES),
    (UNCORE_CACHE, ACROSS_NUMA),
)
TRUE_TEXTS: Final = ("1", "t", "T", "true", "TRUE", "True")
_FALSE: Final = ("0", "f", "F", "false", "FALSE", "False")

CPU_POLICIES: Final = ("none", "static")
TOPOLOGY_POLICIES: Final = ("none", "best-effort", "restricted", "single-numa-node")
TOPOLOGY_SCOPES: Final = ("container", "pod")
_CLOSEST: Final = "prefer-closest-numa-nodes"
_MOST_NUMA: Final = "max-allowable-numa-nodes"
_FEWEST_NUMA: Final = 8
#: What Go reads as a whole number; longer ones are no number of NUMA nodes.
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class CpuManagerOptions:
    """The options of the static policy."""

    full_pcpus_only: bool = False
    distribute_across_numa: bool = False
    align_by_socket: bool = False
    distribute_across_cores: bool = False
    strict_reservation: bool = False
    prefer_align_by_uncore_cache: bool = False
    #: how long exclusive CPUs stay with a container that gives them up (KEP-6122)
    scale_delay_ns: int = 0


def read_cpu_options(
    policy: str, options: Mapping[str, str], gates: Gates | None, problems: Problems
) -> CpuManagerOptions:
    """The options of a file. `gates` is None when they could not be read: then nothing is said about them."""
    at = "cpuManagerPolicyOptions"
    if policy == "none" and options:
        listed = " ".join(f"{name}:{value}" for name, value in sorted(options.items()))
        problems.say(
            at, f"None policy: received unsupported options=map[{listed}]; want cpuManagerPolicy: static"
        )
        return CpuManagerOptions()
    on: dict[str, bool] = {}
    delay = 0
    for name, value in options.items():
        if not _is_available(f"{at}.{name}", name, gates, problems):
            continue
        if name == SCALE_DELAY:
            delay = _delay(f"{at}.{name}", value, gates, problems)
        elif value in TRUE_TEXTS or value in _FALSE:
            on[name] = value in TRUE_TEXTS
        else:
            why = f'strconv.ParseBool: parsing "{value}": invalid syntax; want "true" or "false"'
            problems.say(f"{at}.{name}", f'bad value for option "{name}": {why}')
    for one, other in _APART:
        if on.get(one) and on.get(other):
            problems.say(at, f"static policy options {one} and {other} can not be used at the same time")
    return CpuManagerOptions(
        on.get(FULL_PCPUS_ONLY, False),
        on.get(ACROSS_NUMA, False),
        on.get(ALIGN_BY_SOCKET, False),
        on.get(ACROSS_CORES, False),
        on.get(STRICT_RESERVATION, False),
        on.get(UNCORE_CACHE, False),
        delay,
    )


def _is_available(at: str, name: str, gates: Gates | None, problems: Problems) -> bool:
    if name not in (*_ALPHA, *_BETA, *_STABLE):
        known = (*_STABLE, *_BETA, *_ALPHA)
        problems.say(at, f'unknown CPU Manager Policy option: "{name}"{nearest(name, known)}')
        return False
    for level, names in (("Alpha", _ALPHA), ("Beta", _BETA)):
        gate = f"CPUManagerPolicy{level}Options"
        if name in names and gates is not None and not gates.enabled(gate):
            what = f'CPU Manager Policy {level}-level Options not enabled, but option "{name}" provided'
            problems.say(at, f"{what}; set feature gate {gate}=true")
            return False
    return True


def _delay(at: str, text: str, gates: Gates | None, problems: Problems) -> int:
    try:
        delay = parse_duration(text)
    except DurationError as error:
        problems.say(
            at, f'bad value for option "{SCALE_DELAY}": {error}; want 0s to 10s, such as 5s or 500ms'
        )
        return 0
    if not 0 <= delay <= LONGEST_SCALE_DELAY:
        problems.say(at, f'bad value for option "{SCALE_DELAY}": {text} must be from 0s to 10s')
        return 0
    gate = "InPlacePodVerticalScalingExclusiveCPUs"
    if delay and gates is not None and not gates.enabled(gate):
        LOG.warning("%s %s is not possible: feature gate %s is off", SCALE_DELAY, text, gate)
        problems.say(at, f'option "{SCALE_DELAY}" must be 0s unless feature gate {gate} is on, got {text}')
        return 0
    return delay


def check_topology_options(options: Mapping[str, str], problems: Problems) -> None:
    for name, value in options.items():
        at = f"topologyManagerPolicyOptions.{name}"
        if name == _CLOSEST:
            if value not in (*TRUE_TEXTS, *_FALSE):
                why = f'strconv.ParseBool: parsing "{value}": invalid syntax'
                problems.say(at, f'bad value for option "{name}": {why}; want "true" or "false"')
        elif name != _MOST_NUMA:
            near = nearest(name, (_CLOSEST, _MOST_NUMA))
            problems.say(at, f'unknown Topology Manager Policy option: "{name}"{near}')
        elif _WHOLE.fullmatch(value) is None:
            why = f'strconv.Atoi: parsing "{value}": invalid syntax'
            problems.say(at, f'unable to convert policy option to integer "{name}": {why}')
        elif int(value) < _FEWEST_NUMA:
            problems.say(at, f'the minimum value of "{name}" should not be less than {_FEWEST_NUMA}')
