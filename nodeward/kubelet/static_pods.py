"""Pods from files of the node: read, checked, and watched for changes; they run also when there is no API server.

In goes a directory with one pod a file (JSON or YAML); out come pods as the kubelet runs them: named after the node,
with a uid made from the file's content, so that a changed file is another pod. A file that cannot be used is named in
the log with its line, once for each content it has.

What must stay true: a pod with the same name is not started before the one before it is gone.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Final

import msgspec

from nodeward.api import codec
from nodeward.api.context import Context
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.references import Toleration
from nodeward.api.defaults.pod import default_pod
from nodeward.api.schema import schema_of
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import ConfigError
from nodeward.base.problems import Problems
from nodeward.base.timestamp import rfc3339
from nodeward.base.yaml_text import YamlDocument, documents
from nodeward.kubelet.agent import Agent
from nodeward.kubelet.pod_manager import PodManager
from nodeward.kubelet.pods.state import SOURCE_ANNOTATION
from nodeward.machinery.clock import Clock
from nodeward.rules.pod_references import api_reference
from nodeward.validation.pod.pod import validate_pod

LOG: Final = logging.getLogger(__name__)

SEEN: Final = "kubernetes.io/config.seen"
HASH: Final = "kubernetes.io/config.hash"
_FILE: Final = "file"
_MOST_BYTES: Final = 10 << 20
_SUFFIXES: Final = (".json", ".yaml", ".yml", "")
#: How soon it is looked whether the former pod of a name is gone.
_SOON_SECONDS: Final = 1.0


class StaticPods:
    """The static pods of one node. The first `look` should come before the node is registered.

    Else the API's copies of them (mirrors), which nobody claims yet, would be deleted and made anew.
    """

    def __init__(self, directory: Path, agent: Agent, pods: PodManager, clock: Clock) -> None:
        settings = agent.specification.settings
        self._directory = directory
        self._agent = agent
        self._context = Context(settings.gates)
        self._clock = clock
        self._pods = pods
        self._period = settings.file_check_ns / SECOND_NS
        #: the pod of each file, as it was last read well
        self._wanted: dict[str, Pod] = {}
        #: content of files that could not be used, which was told
        self._told: dict[str, bytes] = {}
        #: uids of what runs, or still does, by name; waiting ones are not in it
        self._running: dict[str, str] = {}
        self._ending: dict[str, None] = {}

    async def run(self) -> None:
        """Look now, and then every so often, until cancelled."""
        while True:
            is_waiting = self.look()
            await self._clock.sleep(_SOON_SECONDS if is_waiting else self._period)

    def look(self) -> bool:
        """Read the files, start and stop what has changed; whether a pod waits for another to be gone."""
        self._read()
        wanted = {f"{pod.metadata.namespace}/{pod.metadata.name}": pod for pod in self._wanted.values()}
        is_waiting = False
        for name, uid in list(self._running.items()):
            new = wanted.get(name)
            if new is None or new.metadata.uid != uid:
                if uid not in self._ending:
                    self._ending[uid] = None
                    self._pods.on_pod_deleted(uid)
                if self._pods.get(uid) is not None:
                    is_waiting = True
                else:
                    del self._running[name], self._ending[uid]
        for name, pod in wanted.items():
            if name not in self._running:
                self._running[name] = pod.metadata.uid
                self._pods.on_static_pod(self._agent, pod)
        return is_waiting

    def _read(self) -> None:
        try:
            files = sorted(each for each in self._directory.iterdir() if not each.name.startswith("."))
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                LOG.warning("static pods: cannot read %s: %s", self._directory, error)
                return
            files = []
        found = {}
        for file in files:
            if file.suffix in _SUFFIXES and file.is_file():
                pod = self._read_file(file)
                if pod is not None:
                    found[str(file)] = pod
        self._wanted = found

    def _read_file(self, file: Path) -> Pod | None:
        # Unlike upstream: a file that is broken now keeps the pod it described when it was whole running.
        before = self._wanted.get(str(file))
        try:
            with file.open("rb") as opened:
                text = opened.read(_MOST_BYTES + 1)
            uid = _uid(text, self._agent.name, file)
            if before is not None and before.metadata.uid == uid:
                return before
            if len(text) > _MOST_BYTES:
                raise ConfigError(f"{file}: larger than {_MOST_BYTES} bytes")
            pod = read_pod(text, str(file), self._agent.name, self._context)
            _complete(pod, uid, self._clock.now_ns())
        except FileNotFoundError:
            return None
        except OSError as error:
            LOG.warning("static pod file %s cannot be read: %s", file, error)
            return before
        except ConfigError as error:
            if self._told.get(str(file)) != text:
                LOG.warning("static pod file is not used: %s", error)
                self._told[str(file)] = text
            return before
        self._told.pop(str(file), None)
        return pod


def _uid(text: bytes, node: str, file: Path) -> str:
    parts = (text, f"host:{node}".encode(), f"file:{file}".encode())
    return hashlib.blake2b(b"\0".join(parts), digest_size=16).hexdigest()


def read_pod(text: bytes, shown: str, node: str, context: Context) -> Pod:
    """The one pod in a file, with defaults, checked. Raises `ConfigError` with file and line of all that is wrong."""
    found = list(documents(text, shown))
    if len(found) != 1:
        raise ConfigError(f"{shown}: a static pod file holds one pod, not {len(found)}")
    document = found[0]
    tree = document.tree
    if not isinstance(tree, dict) or (tree.get("apiVersion"), tree.get("kind")) != ("v1", "Pod"):
        raise document.fault("", "not a pod: apiVersion must be v1 and kind Pod")
    schema = schema_of(Pod)
    problems = Problems(document)
    for stray in codec.stray_fields(tree, schema):
        problems.say(stray, "unknown field")
    problems.settle()
    try:
        pod = codec.from_tree(codec.without_nulls(tree, schema), Pod)
    except (msgspec.ValidationError, TypeError) as error:
        raise _located(document, error) from error
    if not pod.metadata.name:
        raise document.fault("metadata.name", "name is needed for the pod")
    pod.metadata.name = f"{pod.metadata.name}-{node.lower()}"
    pod.metadata.namespace = pod.metadata.namespace or "default"
    pod.spec.node_name = node
    default_pod(pod)
    for wrong in validate_pod(pod, context):
        problems.add(wrong)
    reference = api_reference(pod.spec)
    if reference:
        problems.say("spec", f"static pods may not reference {reference}")
    problems.settle()
    return pod


def _located(document: YamlDocument, error: Exception) -> ConfigError:
    """What the decoder says, with the field it speaks of: `Expected `int`, got `str` - at `$.spec.x``."""
    what, _, at = str(error).partition(" - at `$.")
    field = at.rstrip("`").replace("[...]", "")
    return document.fault(field, what)


def _complete(pod: Pod, uid: str, now_ns: int) -> None:
    meta = pod.metadata
    meta.uid = uid
    meta.creation_timestamp = None
    meta.annotations = {
        **meta.annotations,
        SOURCE_ANNOTATION: _FILE,
        HASH: uid,
        SEEN: rfc3339(now_ns),
    }
    # It goes when its file does, whatever is wrong with the node.
    forever = Toleration(operator="Exists", effect="NoExecute")
    if forever not in pod.spec.tolerations:
        pod.spec.tolerations = [*pod.spec.tolerations, forever]
    pod.status.phase = "Pending"
