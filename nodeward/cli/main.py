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
    """Build the whole command line, without importing the modules of the commands."""
    parser = argparse.ArgumentParser(
        prog="nodeward",
        description="A Kubernetes control plane in one process: real API, real TLS, real storage.",
        allow_abbrev=False,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"nodeward {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        sub = commands.add_parser(
            command.name,
            help=command.summary,
            description=command.description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            # A flag that is added later must not change what somebody's script means.
            allow_abbrev=False,
        )
        command.add_flags(sub)
        sub.set_defaults(module=command.module, parser=sub)
    return parser


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the arguments. An unknown flag is reported by its command, with the nearest flag it has."""
    whole = build_parser()
    given = sys.argv[1:] if arguments is None else arguments
    if not given:
        whole.print_help(sys.stderr)
        sys.exit(2)
    parsed, unknown = whole.parse_known_args(given)
    if unknown:
        parser: argparse.ArgumentParser = parsed.parser
        hint = ""
        if unknown[0].startswith("--"):
            import difflib

            known = [option for action in parser._actions for option in action.option_strings]
            near = difflib.get_close_matches(unknown[0].partition("=")[0], known, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    return parsed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0 for success, 1 for a failure that was explained, 2 for wrong usage."""
    parsed = _parsed(arguments)
    from nodeward.base.errors import NodewardError

    try:
        return int(importlib.import_module(parsed.module).run(parsed))
    except NodewardError as error:
        print(f"nodeward: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 0


if __name__ == "__main__":
    sys.exit(main())
