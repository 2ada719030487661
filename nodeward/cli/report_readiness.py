"""`nodeward report-readiness`: the side-car that reports one readiness condition of its node (KEP-5233).

Wires environment, cluster and signals to the reporter; what it reports is decided in `nodeward.kubelet.reporting`.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace

from nodeward import __version__
from nodeward.base.errors import ConfigError
from nodeward.kubelet.reporting.running import HttpCheck, Reporter
from nodeward.kubelet.reporting.settings import ReporterSettings, read_environment
from nodeward.machinery.clock import Clock, RealClock
from nodeward.machinery.connecting import connect
from nodeward.machinery.kubeconfig import ConnectionConfig, load_config
from nodeward.machinery.metrics import Metrics
from nodeward.machinery.serving.health import HealthPages
from nodeward.machinery.serving.listener import Listener


def run(args: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> int:
    try:
        settings = read_environment(environment)
    except ConfigError as error:
        told = str(error)
        gap = "" if told.startswith("\n") else " "
        raise ConfigError(f"the environment of the reporter is wrong:{gap}{told}") from None
    config = _as_node(load_config(environment, path=args.kubeconfig, context=args.context), settings)
    level = logging.DEBUG if args.verbose else logging.INFO
    logging.basicConfig(level=level, format="%(asctime)s %(message)s", stream=sys.stderr)
    asyncio.run(_run(settings, config, environment))
    return 0


def _as_node(config: ConnectionConfig, settings: ReporterSettings) -> ConnectionConfig:
    if not settings.impersonates_node:
        return config
    name = f"system:node:{settings.node}"
    return replace(config, impersonate_user=name, impersonate_group="system:nodes")


async def _run(settings: ReporterSettings, config: ConnectionConfig, environment: Mapping[str, str]) -> None:
    clock = RealClock()
    client = connect(config, clock=clock, environment=environment, component="readiness-reporter")
    check = HttpCheck(settings.endpoint, clock)
    metrics = Metrics()
    metrics.gauge(
        "node_readiness_reporter_build_info", "Which version this is. The value is always 1.", ("version",)
    ).set(1, __version__)
    pages = await _pages(settings, metrics, clock)
    try:
        await _until_stopped(Reporter(settings, client, check, metrics))
    finally:
        if pages is not None:
            await pages.stop()
        await check.aclose()
        await client.aclose()


async def _until_stopped(reporter: Reporter) -> None:
    """Wait until it is done, or for the first Ctrl-C or SIGTERM."""
    work = asyncio.create_task(reporter.run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, work.cancel)
    try:
        await work
    except asyncio.CancelledError:
        logging.getLogger(__name__).info("stopped; the condition stays as it was last reported")


async def _pages(settings: ReporterSettings, metrics: Metrics, clock: Clock) -> Listener | None:
    if not settings.metrics_address:
        return None
    host, _, port = settings.metrics_address.rpartition(":")
    pages = Listener(HealthPages(metrics, {}).handle, clock)
    try:
        await pages.listen(host.strip("[]") or "0.0.0.0", int(port))
    except OSError as error:
        why = error.strerror or error
        raise ConfigError(
            f"METRICS_BIND_ADDRESS={settings.metrics_address}: cannot listen there: {why}"
        ) from None
    return pages
