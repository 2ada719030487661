"""`nodeward completion bash|zsh|fish`: completion made from the same table as the help."""

from __future__ import annotations

import argparse

from nodeward.cli.flags import COMMANDS, Command


def _flags(command: Command) -> list[str]:
    parser = argparse.ArgumentParser(add_help=True)
    command.add_flags(parser)
    parser.add_argument("-v", "--verbose", action="count")
    return sorted(option for action in parser._actions for option in action.option_strings)


def _bash() -> str:
    cases = "\n".join(
        f'        {command.name}) COMPREPLY=($(compgen -W "{" ".join(_flags(command))}" -f -- "$cur"));;'
        for command in COMMANDS
    )
    names = " ".join(command.name for command in COMMANDS)
    return f"""\
_nodeward() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}"
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{names} --help --version" -- "$cur"))
        return
    fi
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
}}
complete -o default -F _nodeward nodeward
"""


def _zsh() -> str:
    return f"autoload -U +X bashcompinit && bashcompinit\n{_bash()}"


def _fish() -> str:
    lines = ["complete -c nodeward -f"]
    for command in COMMANDS:
        lines.append(
            f"complete -c nodeward -n __fish_use_subcommand -a {command.name} -d '{command.summary}'"
        )
        for flag in _flags(command):
            if flag.startswith("--"):
                condition = f"'__fish_seen_subcommand_from {command.name}'"
                lines.append(f"complete -c nodeward -n {condition} -l {flag[2:]} -F")
    return "\n".join(lines) + "\n"


def run(args: argparse.Namespace) -> int:
    """Print the script for one shell."""
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell](), end="")
    return 0
