"""PodSecurity: the labels of a namespace say how much its pods may ask of their nodes.

`pod-security.kubernetes.io/enforce` refuses pods beyond a level, `warn` warns whoever creates them (and workloads that
would), `audit` is checked and has no effect here, as there is no audit log. As upstream's default nothing is enforced
where there is no label, and nobody is exempt. The rules are in `nodeward/rules/pod_security.py`.

What must stay true: a pod that runs is never judged by an update that leaves its spec alone.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

from nodeward.api.batch_v1 import CronJob
from nodeward.api.core_v1.cluster import Namespace
from nodeward.api.core_v1.pod import Pod, PodTemplateSpec
from nodeward.api.errors import invalid
from nodeward.apiserver.admission.plugin import AdmissionPlugin, Write
from nodeward.base.fielderror import FieldError
from nodeward.base.fielderror import invalid as invalid_field
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.pod_security import LATEST, LEVELS, PRIVILEGED, describe, violations

PREFIX: Final = "pod-security.kubernetes.io/"
_LEVEL_LABELS: Final = tuple(PREFIX + mode for mode in ("enforce", "audit", "warn"))
_VERSION_LABELS: Final = tuple(f"{label}-version" for label in _LEVEL_LABELS)
_VERSION: Final = re.compile(r"latest|v1\.(0|[1-9][0-9]*)")


class PodSecurity(AdmissionPlugin):
    name: ClassVar[str] = "PodSecurity"

    def validate(self, write: Write) -> None:
        if write.new is None:
            return
        if write.is_about("namespaces"):
            self._check_labels(write)
        elif write.is_about("pods", "", "ephemeralcontainers"):
            if write.operation == "CREATE" or write.new.spec != write.old.spec:
                self._check_pod(write, write.new)
        elif write.operation in ("CREATE", "UPDATE") and not write.subresource:
            template = _template(write.new)
            if template is not None:
                self._warn(write, template)

    def _level(self, namespace: str, mode: str) -> tuple[str, str]:
        """Return the level of a namespace and its version; a label that makes no sense is the strictest level."""
        found = self.env.peek(Namespace, namespace)
        labels = found.metadata.labels if found is not None else {}
        level = labels.get(PREFIX + mode, PRIVILEGED)
        version = labels.get(f"{PREFIX}{mode}-version", LATEST)
        if level not in LEVELS or not _VERSION.fullmatch(version):
            return LEVELS[-1], LATEST
        return level, version

    def _check_pod(self, write: Write, pod: Pod) -> None:
        level, version = self._level(write.namespace, "enforce")
        found = violations(pod.spec, pod.metadata.annotations, level, version)
        if found:
            raise write.refuse(f'violates PodSecurity "{level}:{version}": {describe(found)}')
        self._warn(write, pod)

    def _warn(self, write: Write, pod: Pod | PodTemplateSpec) -> None:
        level, version = self._level(write.namespace, "warn")
        found = violations(pod.spec, pod.metadata.annotations, level, version)
        if found:
            write.warnings.append(f'would violate PodSecurity "{level}:{version}": {describe(found)}')

    def _check_labels(self, write: Write) -> None:
        labels, old = write.new.metadata.labels, write.old.metadata.labels if write.old is not None else {}
        faults: list[FieldError] = []
        for key, value in labels.items():
            if value == old.get(key):
                continue
            at = FieldPath("metadata").child("labels").key(key)
            if key in _LEVEL_LABELS and value not in LEVELS:
                faults.append(invalid_field(at, value, f"must be one of {', '.join(LEVELS)}"))
            elif key in _VERSION_LABELS and not _VERSION.fullmatch(value):
                faults.append(invalid_field(at, value, 'must be "latest" or "v1.x"'))
        if faults:
            raise invalid("", "Namespace", write.name, faults)


def _template(obj: Any) -> PodTemplateSpec | None:
    """Return the template of a workload; None: it has none."""
    if isinstance(obj, CronJob):
        return obj.spec.job_template.spec.template
    found = getattr(obj, "template", None) or getattr(getattr(obj, "spec", None), "template", None)
    return found if isinstance(found, PodTemplateSpec) else None
