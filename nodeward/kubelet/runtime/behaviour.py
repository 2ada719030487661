"""How a simulated container behaves, as its pod's annotations tell.

`simulation.nodeward.dev/<container>` is a list like `start-delay=2s,run-time=30s,exit-code=1`; the annotation
`simulation.nodeward.dev/pod` holds for all containers that have none of their own. What can be said:

| word | meaning | default |
|---|---|---|
| `pull-time` | how long the image takes to come, the first time on a runtime | 0s |
| `start-delay` | from the command to start until it runs | 0s |
| `run-time` | how long it runs; without it a server: for ever (init containers: no time) | |
| `exit-code` | what it ends with when its time is over | 0 |
| `crashes` | how many starts end with exit code 1 (or `exit-code`) after `crash-after`, before it behaves | 0 |
| `crash-after` | how long a start lasts that crashes | 1s |
| `ready-after` | from when its readiness (and startup) probes hold | 0s |
| `unhealthy-after` | from when its liveness probe fails | never |
| `stop-delay` | how long it takes to obey SIGTERM | 0s |
| `stop-code` | what it ends with then | 0 |
| `post-start-code`, `pre-stop-code` | what that hook ends with; 0: its command is run as far as it can be | 0 |
| `memory-use` | how much memory it uses; its limit cannot be made smaller | 0 |
| `fails` | why it cannot start, one of `FAILURES` | |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from nodeward.base.duration import SECOND_NS, parse_duration
from nodeward.base.quantity import Quantity

PREFIX: Final = "simulation.nodeward.dev/"
WHOLE_POD: Final = "pod"
#: Those for which there is no image to speak of.
IMAGE_FAILURES: Final = ("ErrImagePull", "ErrImageNeverPull", "InvalidImageName")
FAILURES: Final = (
    *IMAGE_FAILURES,
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """All durations are nanoseconds."""

    pull_time_ns: int = 0
    start_delay_ns: int = 0
    run_time_ns: int | None = None
    exit_code: int = 0
    crashes: int = 0
    crash_after_ns: int = SECOND_NS
    ready_after_ns: int = 0
    unhealthy_after_ns: int | None = None
    stop_delay_ns: int = 0
    stop_code: int = 0
    post_start_code: int = 0
    pre_stop_code: int = 0
    memory_use_bytes: int = 0
    fails: str = ""


USUAL: Final = Behaviour()
_DURATIONS: Final = {
    "pull-time": "pull_time_ns",
    "start-delay": "start_delay_ns",
    "run-time": "run_time_ns",
    "crash-after": "crash_after_ns",
    "ready-after": "ready_after_ns",
    "unhealthy-after": "unhealthy_after_ns",
    "stop-delay": "stop_delay_ns",
}
_NUMBERS: Final = {
    "exit-code": "exit_code",
    "crashes": "crashes",
    "stop-code": "stop_code",
    "post-start-code": "post_start_code",
    "pre-stop-code": "pre_stop_code",
}
_MEMORY: Final = "memory-use"


def behaviour_of(annotations: Mapping[str, str], container: str, usual: Behaviour = USUAL) -> Behaviour:
    """What the annotations say of a container. A word nobody understands raises a ValueError that names it."""
    if not annotations:
        return usual
    for name in (container, WHOLE_POD):
        text = annotations.get(f"{PREFIX}{name}")
        if text is not None:
            return parse(text, usual, f"annotation {PREFIX}{name}")
    return usual


def parse(text: str, usual: Behaviour = USUAL, where: str = "behaviour") -> Behaviour:
    """A list of words, over what is usual."""
    changed: dict[str, Any] = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (part.strip() for part in word.partition("="))
        try:
            if name in _DURATIONS:
                changed[_DURATIONS[name]] = parse_duration(value)
            elif name in _NUMBERS:
                changed[_NUMBERS[name]] = int(value)
            elif name == _MEMORY:
                changed["memory_use_bytes"] = Quantity.parse(value).value
            elif name == "fails":
                if value not in FAILURES:
                    raise ValueError(f"{value!r} is none of {', '.join(FAILURES)}")
                changed["fails"] = value
            else:
                known = ", ".join(sorted((*_DURATIONS, *_NUMBERS, _MEMORY, "fails")))
                raise ValueError(f"unknown word {name!r}; known are {known}")
        except ValueError as error:
            raise ValueError(f"{where}: {word!r}: {error}") from None
    return replace(usual, **changed)
