"""Types of flag values, for argparse. Imports little, because `--help` needs it."""

from __future__ import annotations

import argparse


def port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; want a number from 0 (any free one) to 65535")
    return int(text)


def number(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of nodes")
    return int(text)


def count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no count; want a whole number from 1 on")
    return int(text)


def directory(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("want a directory, not nothing; the present one is .")
    return text
