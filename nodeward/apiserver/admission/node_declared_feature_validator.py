"""NodeDeclaredFeatureValidator: refuses changes that need features the pod's node does not declare (KEP-5328).

An update or resize of a bound pod is allowed only if its node declares the features the change needs, which the library
of declared features infers, so that a new feature needs no line here. A ResourceSlice may offer devices made of node
allocatable resources only on nodes that can account for them. Not checked: pods without a node, and the creation,
status, binding or ephemeral containers of a pod.
"""

from __future__ import annotations

from typing import ClassVar

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.resource_v1 import Device, ResourceSlice
from nodeward.apiserver.admission.plugin import AdmissionPlugin, Write
from nodeward.apiserver.environment import Environment
from nodeward.base.fielderror import quote
from nodeward.features import FeatureError, PodInfo, Version
from nodeward.features.declared import dra_node_allocatable_resources
from nodeward.rules.affinity import selects

_SLICE_FEATURE = dra_node_allocatable_resources.NAME


class NodeDeclaredFeatureValidator(AdmissionPlugin):
    name: ClassVar[str] = "NodeDeclaredFeatureValidator"

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self._features = env.features
        #: what features are inferred for: the API server's own version
        self._version = Version.parse(env.gates.version)
        self._is_on = env.context.on("NodeDeclaredFeatures")
        self._checks_slices = env.context.on("DRANodeAllocatableResources")

    def validate(self, write: Write) -> None:
        if not self._is_on:
            return
        if write.operation == "UPDATE" and write.is_about("pods", "", "resize"):
            self._check_update(write)
        elif write.operation != "DELETE" and write.is_about("resourceslices", group="resource.k8s.io"):
            self._check_slice(write)

    def _check_update(self, write: Write) -> None:
        new: Pod = write.new
        old: Pod = write.old
        node_name = new.spec.node_name
        # The server counts changes of the spec; without one there is nothing to infer.
        if not node_name or new.metadata.generation == old.metadata.generation:
            return
        before, after = PodInfo(old.spec, old.status), PodInfo(new.spec, new.status)
        try:
            required = self._features.infer_for_pod_update(before, after, self._version)
        except FeatureError as error:
            raise write.refuse(f"failed to infer pod capability requirements: {error}") from error
        if required.is_empty:
            return
        node = self.env.peek(Node, node_name)
        if node is None:
            raise write.refuse(f"node {quote(node_name)} not found")
        result = self._features.match_node(required, node)
        if not result.is_match:
            missing = ", ".join(result.unsatisfied)
            raise write.refuse(
                f"pod update requires features {missing} which are not available on node {quote(node_name)}"
            )

    def _check_slice(self, write: Write) -> None:
        if not self._checks_slices:
            return
        new: ResourceSlice = write.new
        for device in new.spec.devices:
            if device.node_allocatable_resources:
                for node in self._nodes_of(device, new, write):
                    if _SLICE_FEATURE not in node.status.declared_features:
                        name = quote(node.metadata.name)
                        raise write.refuse(f"node {name} does not support {_SLICE_FEATURE} feature")

    def _nodes_of(self, device: Device, offered: ResourceSlice, write: Write) -> list[Node]:
        """Return the nodes a device is on, as the device or its slice says."""
        where = device if offered.spec.per_device_node_selection else offered.spec
        if where.node_name:
            node = self.env.peek(Node, where.node_name)
            if node is None:
                name = quote(device.name)
                raise write.refuse(f"node {quote(where.node_name)} not found for device {name}")
            return [node]
        nodes = self.env.peek_all(Node)
        selector = where.node_selector
        if selector is not None:
            return [node for node in nodes if selects(selector, node)]
        if where.all_nodes:
            return nodes
        raise write.refuse(
            f"device {quote(device.name)} in ResourceSlice has NodeAllocatableResources "
            "but does not map to any nodes"
        )
