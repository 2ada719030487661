"""`nodeward completion bash|zsh|fish`: shell completion made from the parser itself.

Completes commands, subcommands, flags, and values: the choices of a flag or argument, files where the help says FILE or
*.yaml, directories where it says DIR, and nothing where any text may stand.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nodeward.cli.flags import BENCHMARKS
from nodeward.cli.main import build_parser

#: How values without choices are completed, by what the help calls them.
_SUGGESTED: Final = {"--store": ("memory", "sqlite", "etcd://"), "NAME of bench": BENCHMARKS}


@dataclass(frozen=True, slots=True)
class _Place:
    """One command or subcommand: what can be typed after it."""

    words: tuple[str, ...]
    summary: str
    parser: argparse.ArgumentParser

    @property
    def flags(self) -> list[argparse.Action]:
        return [action for action in self.parser._actions if action.option_strings]

    @property
    def below(self) -> dict[str, str]:
        """The subcommands, with their help."""
        for action in self.parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                return {each.dest: each.help or "" for each in action._choices_actions}
        return {}

    def arguments(self) -> tuple[str, tuple[str, ...]]:
        """Return how to complete positional arguments: -W, -f or -d of compgen, and the words."""
        if self.below:
            return "-W", tuple(self.below)
        positional = [action for action in self.parser._actions if not action.option_strings]
        return _values(positional[0], f" of {' '.join(self.words)}") if positional else ("-W", ())


def _values(action: argparse.Action, where: str = "") -> tuple[str, tuple[str, ...]]:
    name = action.option_strings[-1] if action.option_strings else f"{action.metavar}{where}"
    metavar = str(action.metavar or "")
    if action.choices:
        return "-W", tuple(map(str, action.choices))
    if name in _SUGGESTED:
        return "-W", _SUGGESTED[name]
    if metavar == "DIR":
        return "-d", ()
    return ("-f", ()) if metavar == "FILE" or metavar.endswith(".yaml") else ("-W", ())


def _places(parser: argparse.ArgumentParser, words: tuple[str, ...], summary: str) -> Iterator[_Place]:
    place = _Place(words, summary, parser)
    yield place
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                yield from _places(sub, (*words, name), place.below[name])


def _takes_value(action: argparse.Action) -> bool:
    return action.nargs != 0


def _bash() -> str:
    places = list(_places(build_parser(), (), ""))
    steps = "|".join(f'"{" ".join(("", *place.words))}"' for place in places if place.words)
    values: list[str] = []
    rest: list[str] = []
    for place in places:
        path = " ".join(("", *place.words))
        for action in place.flags:
            if _takes_value(action):
                how, words = _values(action)
                tests = "|".join(f'"{path} {option}"' for option in action.option_strings)
                values.append(f"        {tests}) {_reply(how, words)}; return;;")
        flags = [option for action in place.flags for option in action.option_strings]
        rest.append(
            f'        "{path}")\n'
            f'            if [[ "$cur" == -* ]]; then {_reply("-W", flags)}\n'
            f"            else {_reply(*place.arguments())}; fi;;"
        )
    return "\n".join(
        (
            "_nodeward() {",
            '    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" at="" i',
            "    for ((i = 1; i < COMP_CWORD; i++)); do",
            f'        case "$at ${{COMP_WORDS[i]}}" in {steps}) at="$at ${{COMP_WORDS[i]}}";; esac',
            "    done",
            "    # bash takes --flag=value apart",
            '    if [[ "$cur" == "=" ]]; then cur=""; fi',
            '    if [[ "$prev" == "=" ]]; then prev="${COMP_WORDS[COMP_CWORD-2]}"; fi',
            "    COMPREPLY=()",
            '    case "$at $prev" in',
            *values,
            "    esac",
            '    case "$at" in',
            *rest,
            "    esac",
            "}",
            "complete -o filenames -F _nodeward nodeward",
            "",
        )
    )


def _reply(how: str, words: tuple[str, ...] | list[str]) -> str:
    if how == "-W":
        return f'COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$cur"))' if words else ":"
    return f"local IFS=$'\\n'; COMPREPLY=($(compgen {how} -- \"$cur\"))"


def _zsh() -> str:
    return f"autoload -U +X bashcompinit && bashcompinit\n{_bash()}"


def _fish() -> str:
    lines = ["complete -c nodeward -f"]
    for place in _places(build_parser(), (), ""):
        seen = [f"__fish_seen_subcommand_from {word}" for word in place.words]
        below = place.below
        if below:
            seen.append(f"not __fish_seen_subcommand_from {' '.join(below)}")
        start = f"complete -c nodeward -n {shlex.quote('; and '.join(seen))}"
        lines.extend(f"{start} -a {name} -d {shlex.quote(text)}" for name, text in below.items())
        how, words = ("-W", ()) if below else place.arguments()
        if words:
            lines.append(f"{start} -a {shlex.quote(' '.join(words))}")
        elif how != "-W":
            lines.append(f"{start} -F")
        for action in place.flags:
            names = " ".join(
                f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
                for option in action.option_strings
            )
            lines.append(f"{start} {names}{_fish_value(action)}")
    return "\n".join(lines) + "\n"


def _fish_value(action: argparse.Action) -> str:
    if not _takes_value(action):
        return ""
    how, words = _values(action)
    if how != "-W":
        return " -rF"
    return f" -xa {shlex.quote(' '.join(words))}" if words else " -x"


def run(args: argparse.Namespace) -> int:
    """Print the script for one shell."""
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell](), end="")
    return 0
