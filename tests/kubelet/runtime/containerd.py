"""A private containerd for tests: own directories, own socket, one image made of busybox, nothing left behind.

`running_containerd(directory)` gives a `Containerd`; it skips the test, loudly, where there is no root, no containerd,
no runc or no static busybox. Sandboxes use the host's network: no bridge and no address translation is set up.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nodeward.base.duration import SECOND_NS
from nodeward.machinery.clock import RealClock
from tests.patience import PATIENCE_SECONDS

#: What the tests run; it is nowhere but here, so that no test can pull it.
IMAGE = "nodeward.test/busybox:1"
#: An image whose user is not root.
USER_IMAGE = "nodeward.test/nobody:1"
PAUSE_IMAGE = "nodeward.test/pause:1"

#: Where Debian puts the plugins that set up networks.
NETWORK_PLUGINS = Path("/usr/lib/cni")

_NAMESPACE = "k8s.io"
_NEEDED = ("containerd", "containerd-shim-runc-v2", "runc", "ctr", "busybox")

# root may lack CAP_SYS_RESOURCE (restrict_oom_score_adj); there may be no systemd (SystemdCgroup).
_CONFIG = """\
version = 2
root = "{root}/lib"
state = "{root}/run"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  disable_tcp_service = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{root}/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    SystemdCgroup = {systemd}
"""


class Containerd:
    """One containerd process and its directory. It can be killed and started again: what it runs goes on."""

    def __init__(self, directory: Path, *, has_systemd: bool = False) -> None:
        self.directory = directory
        # The path of a socket must be short, and directories of tests on a worker are not.
        self._sockets = Path(tempfile.mkdtemp(prefix="containerd-"))
        self.socket = str(self._sockets / "containerd.sock")
        #: where the agent puts its pods' groups; nobody else does
        self.cgroup_root = f"nodeward-test-{os.getpid()}-{directory.name}"
        config = directory / "config.toml"
        config.write_text(
            _CONFIG.format(
                root=directory,
                socket=self.socket,
                pause=PAUSE_IMAGE,
                plugins=NETWORK_PLUGINS,
                systemd=str(has_systemd).lower(),
            )
        )
        self._command = ["containerd", "--config", str(config), "--log-level", "error"]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.directory / "containerd.log").open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, start_new_session=True)
        end_ns = (clock := RealClock()).monotonic_ns() + int(PATIENCE_SECONDS * SECOND_NS)
        while not self._answers():
            if self._process.poll() is not None or clock.monotonic_ns() > end_ns:
                raise AssertionError(f"containerd does not start:\n{self.log()}")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.02)

    def kill(self) -> None:
        """SIGKILL; containers go on running."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def log(self) -> str:
        return (self.directory / "containerd.log").read_text(errors="replace")[-4000:]

    def import_images(self) -> None:
        archive = self.directory / "images.tar"
        write_images(archive)
        self.ctr("images", "import", str(archive))

    def ctr(self, *words: str) -> str:
        """containerd's own tool, for what the agent has no business doing."""
        done = subprocess.run(
            ["ctr", "-a", self.socket, "-n", _NAMESPACE, *words],
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"ctr {' '.join(words)}: {done.stderr}"
        return done.stdout

    def clean(self) -> None:
        """Whatever a test left behind, also when containerd does not answer: processes, mounts, groups."""
        # First of all, or it tidies up at the same time.
        self.kill()
        tasks = list(self.directory.glob(f"run/io.containerd.runtime.v2.task/{_NAMESPACE}/*"))
        for pid in self._leftovers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for task in tasks:
            with contextlib.suppress(OSError):
                Path((task / "address").read_text().removeprefix("unix://")).unlink()
            shutil.rmtree(f"/run/containerd/runc/{_NAMESPACE}/{task.name}", ignore_errors=True)
        for point in self._mounts():
            subprocess.run(["umount", "-l", point], check=False, capture_output=True)
        for root in Path("/sys/fs/cgroup").glob(f"*/{self.cgroup_root}"):
            _remove_groups(root)
        _remove_groups(Path("/sys/fs/cgroup") / self.cgroup_root)
        shutil.rmtree(self._sockets, ignore_errors=True)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(self.socket)
            except OSError:
                return False
            return True

    def _leftovers(self) -> list[int]:
        """Shims that serve this containerd, and what runs in its groups."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                line = (entry / "cmdline").read_bytes().decode(errors="replace")
                is_shim = "containerd-shim" in line and self.socket in line
                if is_shim or self.cgroup_root in (entry / "cgroup").read_text():
                    found.append(int(entry.name))
        return found

    def _mounts(self) -> list[str]:
        """The innermost first."""
        lines = Path("/proc/self/mounts").read_text().splitlines()
        points = [line.split(" ")[1] for line in lines]
        return [each for each in reversed(points) if each.startswith(f"{self.directory}/")]


def _remove_groups(root: Path) -> None:
    if root.is_dir():
        for folder, _, _ in os.walk(root, topdown=False):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()


def why_not() -> str:
    """Why there can be no containerd here; empty if there can."""
    if os.geteuid() != 0:
        return "NOT ROOT: nothing of the CRI runtime was tested with containerd; run the tests as root"
    missing = [each for each in _NEEDED if shutil.which(each) is None]
    busybox = shutil.which("busybox")
    if busybox is not None and b"/ld-" in Path(busybox).read_bytes()[:4096]:
        missing.append("static busybox")
    if missing:
        return (
            f"NO {', '.join(missing).upper()} HERE: nothing of the CRI runtime was tested with containerd; "
            "install containerd, runc and busybox-static"
        )
    return ""


@contextmanager
def running_containerd(directory: Path, *, has_systemd: bool = False) -> Iterator[Containerd]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    each = Containerd(directory, has_systemd=has_systemd)
    try:
        each.start()
        each.import_images()
        yield each
    finally:
        each.clean()


# -- an image, written with the standard library


def write_images(archive: Path) -> None:
    """An OCI layout with three images of one layer: busybox, and a shell for every name it answers to."""
    layer = _layer()
    blobs: dict[str, bytes] = {}
    manifests = []
    for name, config in (
        (IMAGE, {"Cmd": ["sleep", "1000000"]}),
        (USER_IMAGE, {"Cmd": ["sleep", "1000000"], "User": "65534:65534"}),
        (PAUSE_IMAGE, {"Entrypoint": ["/bin/sleep", "1000000"]}),
    ):
        manifests.append(
            {**_manifest(blobs, layer, config), "annotations": {"io.containerd.image.name": name}}
        )
    index = json.dumps({"schemaVersion": 2, "manifests": manifests}).encode()
    with tarfile.open(archive, "w") as tar:
        _add(tar, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        _add(tar, "index.json", index)
        for digest, data in blobs.items():
            _add(tar, f"blobs/sha256/{digest}", data)


def _manifest(blobs: dict[str, bytes], layer: bytes, config: dict[str, Any]) -> dict[str, Any]:
    image = {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine),
        "os": "linux",
        "config": {"Env": ["PATH=/bin"], **config},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    oci = "application/vnd.oci.image"
    return _blob(
        blobs,
        f"{oci}.manifest.v1+json",
        json.dumps(
            {
                "schemaVersion": 2,
                "config": _blob(blobs, f"{oci}.config.v1+json", json.dumps(image).encode()),
                "layers": [_blob(blobs, f"{oci}.layer.v1.tar", layer)],
            }
        ).encode(),
    )


def _blob(blobs: dict[str, bytes], media_type: str, data: bytes) -> dict[str, Any]:
    digest = hashlib.sha256(data).hexdigest()
    blobs[digest] = data
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}


def _layer() -> bytes:
    busybox = shutil.which("busybox")
    assert busybox is not None
    names = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for folder in ("bin", "dev", "etc", "proc", "sys", "tmp", "var"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(entry)
        _add(tar, "bin/busybox", Path(busybox).read_bytes(), 0o755)
        for name in names:
            if name != "busybox":
                entry = tarfile.TarInfo(f"bin/{name}")
                entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(entry)
        _add(tar, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")
        _add(tar, "etc/group", b"root:x:0:\nnobody:x:65534:\n")
    return out.getvalue()


def _add(tar: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    tar.addfile(entry, io.BytesIO(data))
