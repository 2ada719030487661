"""The defaults' registry, first half: pods, pod templates and nodes."""

from __future__ import annotations

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod, PodTemplate
from nodeward.api.defaults.defaulter import Defaults
from nodeward.api.defaults.node import default_node
from nodeward.api.defaults.pod import default_pod, default_pod_template


def _pod_template(template: PodTemplate) -> None:
    default_pod_template(template.template)


PODS_AND_NODES: Defaults = {
    Pod: default_pod,
    PodTemplate: _pod_template,
    Node: default_node,
}
