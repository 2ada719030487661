"""`nodeward`: one program, one subcommand per job.

Start-up time is a feature: this module imports nothing but argparse, and a command's own module is imported when the
command is run. `--help` therefore costs what Python costs.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from nodeward import __version__
from nodeward.cli.flags import COMMANDS

_EPILOG = """\
first steps:
  nodeward up                     start a cluster in this directory (.nodeward); Ctrl-C stops it
  export KUBECONFIG=...           as `nodeward up` prints it, then use kubectl as always
  nodeward COMMAND --help         the flags of a command
"""


def build_parser() -> argparse.ArgumentParser:
    """The whole command line, without importing what the commands do."""
    parser = argparse.ArgumentParser(
        prog="nodeward",
        description="A Kubernetes control plane in one process: real API, real TLS, real storage.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"nodeward {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        sub = commands.add_parser(
            command.name,
            help=command.summary,
            description=command.description or command.summary,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_flags(sub)
        sub.add_argument("-v", "--verbose", action="count", default=0, help="say more; twice for everything")
        sub.set_defaults(module=command.module)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0 for success, 1 for a failure that was explained, 2 for wrong usage."""
    parsed = build_parser().parse_args(arguments)
    from nodeward.base.errors import NodewardError

    module = importlib.import_module(parsed.module)
    try:
        return int(module.run(parsed))
    except NodewardError as error:
        print(f"nodeward: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 0


if __name__ == "__main__":
    sys.exit(main())
