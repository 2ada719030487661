"""`nodeward dra-driver PROFILE`: a DRA driver for pretended devices, with or without a part on a node (KEP-5945).

An ordinary client of any cluster. With --node it registers with the kubelet below --kubelet-dir and serves its calls;
without, it publishes the devices and keeps them published.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from pathlib import Path

from nodeward.base.duration import SECOND_NS, DurationError, parse_duration
from nodeward.base.errors import ConfigError
from nodeward.cli.long_running import run_until_stopped
from nodeward.dra.device_profile import load_profile_file
from nodeward.dra.slice_publisher import SlicePublisher
from nodeward.machinery.clock import RealChance, RealClock
from nodeward.machinery.connecting import connect
from nodeward.machinery.kubeconfig import load_config


def run(args: argparse.Namespace) -> int:
    """Run until Ctrl-C."""
    environment = dict(os.environ)
    profile = load_profile_file(Path(args.profile), args.node)
    if args.node and not args.kubelet_dir:
        raise ConfigError("--kubelet-dir: say where the kubelet of --node keeps its files")
    kubelet_root = Path(args.kubelet_dir).absolute()
    try:
        slow_ns = parse_duration(args.slow)
    except DurationError as error:
        raise ConfigError(f"--slow: {error}") from None
    config = load_config(environment, path=args.kubeconfig, context=args.context)

    async def start(running: AsyncExitStack) -> Awaitable[None] | None:
        clock = RealClock()
        client = connect(config, clock=clock, environment=environment, component="nodeward-dra-driver")
        running.push_async_callback(client.aclose)
        if not args.node:
            publisher = SlicePublisher(client)
            await publisher.publish(profile)
            print(f"driver {profile.driver} has published its devices and has no node part", flush=True)
            return publisher.keep(profile, clock, RealChance())
        from nodeward.dra.pretend_driver import Faults, PretendDriver

        faults = Faults(
            slow_seconds=slow_ns / SECOND_NS,
            failing_prepares=args.fail_prepares,
            failing_unprepares=args.fail_unprepares,
            crash_in_prepare=args.crash_in_prepare,
        )
        driver = PretendDriver(
            client,
            profile,
            args.node,
            kubelet_root,
            clock,
            cdi_directory=Path(args.cdi_dir),
            faults=faults,
        )
        running.push_async_callback(driver.stop)
        await driver.start()
        print(f"driver {profile.driver} serves {driver.server.endpoint}", flush=True)
        await driver.server.registered.wait()
        print(f"driver {profile.driver} is registered with the kubelet", flush=True)
        return None

    return run_until_stopped(args.verbose, start)
