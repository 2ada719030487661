"""Flags that several commands share, with the same help. Imports little, as `flags` does."""

from __future__ import annotations

import argparse
from typing import Final

DEFAULT_VERSION: Final = "1.37"
_PLACES: Final = "$KUBECONFIG, the pod's service account, or ~/.kube/config"


def connection_flags(parser: argparse.ArgumentParser, *, first: str = "") -> None:
    """Add the flags with which a client finds its cluster; `first` is read before the usual places."""
    parser.add_argument(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help=f"how to reach the cluster (default: {first}{_PLACES})",
    )
    parser.add_argument("--context", default="", metavar="NAME", help="the context of the kubeconfig to use")


def version_flags(parser: argparse.ArgumentParser, component: str, example: str = "") -> None:
    """Add the flags for the emulated version and its gates."""
    parser.add_argument(
        "--kubernetes-version",
        default=DEFAULT_VERSION,
        metavar="VERSION",
        help=f"the Kubernetes version to behave like, 1.34 to 1.38 (default {DEFAULT_VERSION})",
    )
    parser.add_argument(
        "--feature-gates",
        default="",
        metavar="NAME=BOOL,...",
        help=f"feature gates, as {component} takes them{example}",
    )


def leader_flag(parser: argparse.ArgumentParser, default: str, told: str = " true") -> None:
    parser.add_argument(
        "--leader-elect",
        choices=("true", "false"),
        nargs="?",
        const="true",
        default=default,
        help=f"whether to work only while no other copy does (default{told})",
    )
