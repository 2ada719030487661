"""`nodeward controllers`, again and again, from a process that has loaded everything already.

For each line read it runs the command once, in a process of its own, and says its number; when that one has ended it
says how. Only the loading is saved: nothing of one run is left for the next.
"""

from __future__ import annotations

import os
import sys

from nodeward.cli import controllers, main  # noqa: F401 - loaded here, once, for all runs


def run(arguments: list[str]) -> None:
    for _ in sys.stdin:
        pid = os.fork()
        if not pid:
            # What the command prints is not for whoever reads our lines.
            os.dup2(2, 1)
            os._exit(main.main(["controllers", *arguments]))
        say(f"{pid}")
        _, status = os.waitpid(pid, 0)
        say(f"{os.waitstatus_to_exitcode(status)}")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    run(sys.argv[1:])
