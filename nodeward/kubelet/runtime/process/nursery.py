"""Where supervisors are born: one small process that has everything loaded and forks one for each container.

Started by the agent, with a socket as its standard input. A message is a container's directory, with it comes the
file its supervisor answers to. It ends when the agent does; the supervisors it made do not.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
import traceback
from typing import Final, NoReturn

from nodeward.kubelet.runtime.process import kernel, shim

#: A path is no longer, and goes in one message.
LONGEST: Final = 8192


def main() -> None:
    """Serve the agent until it is gone."""
    # A terminal's Ctrl-C is for the agent, which may have something left to start.
    os.setsid()
    # What is loaded is shared with all supervisors as long as nobody touches it, the collector included.
    gc.disable()
    gc.freeze()
    with socket.socket(fileno=os.dup(0)) as agent:
        while True:
            message, files, _, _ = socket.recv_fds(agent, LONGEST, 1)
            if not message:
                return
            child = os.fork()
            if not child:
                _supervise(message.decode(), files[0])
            os.close(files[0])
            # It leaves as soon as the supervisor, its child, is there.
            os.waitpid(child, 0)


def _supervise(directory: str, answer: int) -> NoReturn:
    try:
        os.dup2(answer, 1)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(os.open(f"{directory}/trouble", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
        kernel.name_process("nodeward-shim")
        shim.main(directory)
    finally:
        # Whatever happened, this process must not go on as another nursery.
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
        os._exit(0)
