"""The state file `cpu_manager_state` on a node's disk: read when the kubelet starts, written after every change.

`policy_setup` loads the state, `StaticCPUs` saves it; `state_file` knows the text.

What must stay true: a file that cannot be used stops the start, is named, and stays where it is until somebody has
drained the node and deleted it; a write that failed is made up for by the next one.
"""

from __future__ import annotations

from typing import Final

from nodeward.kubelet.cpu.cpu_state import CPUState
from nodeward.kubelet.cpu.state_file import FILE_NAME, StateFileError, decode, encode, refusal
from nodeward.kubelet.disk import Disk
from nodeward.kubelet.topology_manager.topology_admission import TopologyRefusal, unexpected


class CPUStateStore:
    """The state file of one node under one policy."""

    def __init__(self, disk: Disk, policy: str) -> None:
        self._disk: Final = disk
        self._policy: Final = policy
        self._written = ""
        #: what the file holds; None if that is not known
        self._saved: CPUState | None = None

    @property
    def path(self) -> str:
        """What people call the file."""
        return self._disk.shown(FILE_NAME)

    def refusal(self, error: OSError) -> TopologyRefusal:
        """Return why a pod is refused whose CPUs cannot be written down."""
        return unexpected(f"the CPU manager's state file {self.path} cannot be written: {error}")

    def load(self, *, keeps_baselines: bool, with_pod_level: bool) -> CPUState:
        """Return the state that was saved last, or an empty one if there is no file. Raises `StateFileError`."""
        stored = self._disk.read(FILE_NAME)
        if stored is None:
            return CPUState(keeps_baselines=keeps_baselines)
        try:
            self._written = stored.decode()
            return decode(
                self._written, self._policy, keeps_baselines=keeps_baselines, with_pod_level=with_pod_level
            )
        except UnicodeDecodeError as error:
            raise StateFileError(refusal(self.path, StateFileError(f"not UTF-8: {error}"))) from None
        except StateFileError as error:
            raise StateFileError(refusal(self.path, error)) from None

    def save(self, state: CPUState) -> None:
        """Write the state, unless the file has it already. Raises OSError, and the file is as it was."""
        if state == self._saved:
            return  # most passes: comparing costs far less than the checksums
        text = encode(state, self._policy)
        if text != self._written:
            self._disk.write(FILE_NAME, text.encode())
            self._written = text
        self._saved = state.copy()


def check_foreign_state(disk: Disk) -> None:
    """Refuse to start without the static policy on a node whose state file is of that policy."""
    CPUStateStore(disk, "none").load(keeps_baselines=False, with_pod_level=False)
