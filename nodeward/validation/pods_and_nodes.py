"""The rules' registry, first half: pods, pod templates and nodes.

Subresources of pods have functions of their own: `validate_pod_resize`, `validate_ephemeral_containers_update`,
`validate_binding`.
"""

from __future__ import annotations

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod, PodTemplate
from nodeward.validation.core.node import (
    node_name,
    node_warnings,
    validate_node,
    validate_node_status_update,
    validate_node_update,
)
from nodeward.validation.pod.pod import (
    pod_name,
    validate_pod,
    validate_pod_template,
    validate_pod_template_update,
)
from nodeward.validation.pod.status import validate_pod_status_update
from nodeward.validation.pod.update import validate_pod_update
from nodeward.validation.pod.warnings import pod_template_kind_warnings, pod_warnings
from nodeward.validation.validator import Validator, Validators

PODS_AND_NODES: Validators = {
    Pod: Validator(
        create=validate_pod,
        update=validate_pod_update,
        status=validate_pod_status_update,
        name=pod_name,
        warnings=pod_warnings,
    ),
    PodTemplate: Validator(
        create=validate_pod_template,
        update=validate_pod_template_update,
        status=None,
        name=pod_name,
        warnings=pod_template_kind_warnings,
    ),
    Node: Validator(
        create=validate_node,
        update=validate_node_update,
        status=validate_node_status_update,
        name=node_name,
        warnings=node_warnings,
    ),
}
