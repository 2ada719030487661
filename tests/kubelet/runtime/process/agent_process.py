"""An agent as a process of its own, to be killed: starts what it is told and says what it hears, a line each."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from nodeward.kubelet.runtime.interface import RuntimeEvent
from nodeward.kubelet.runtime.process.runtime import ProcessRuntime
from nodeward.machinery.clock import RealChance, RealClock
from tests.kubelet.runtime.process.pods import pod_of, request_of


def tell(event: RuntimeEvent) -> None:
    sys.stdout.write(f"{type(event).__name__} {event}\n")
    sys.stdout.flush()


async def main(root: str, count: str, script: str) -> None:
    runtime = ProcessRuntime(Path(root) / "runtime", RealClock(), RealChance())
    await runtime.start(tell)
    await runtime.recover()
    for number in range(int(count)):
        pod = pod_of(f"uid-{number}")
        runtime.start_sandbox(pod)
        runtime.start_container(request_of(pod, script, log_path=f"{root}/log-{number}"))
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
