"""Resources of a whole pod: they bound what its containers ask for together."""

from __future__ import annotations

from nodeward.api.core_v1.container import ResourceRequirements
from nodeward.api.core_v1.pod import PodSpec
from nodeward.base.fielderror import FieldError, forbidden, invalid
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.pod_resources import container_limits, container_requests
from nodeward.rules.resource_names import is_hugepages
from nodeward.validation.pod.options import PodOptions
from nodeward.validation.pod.resource_lists import validate_pod_resource_name, validate_requirements


def validate_pod_resources(
    spec: PodSpec,
    resources: ResourceRequirements,
    spec_path: FieldPath,
    claim_names: frozenset[str],
    options: PodOptions,
) -> list[FieldError]:
    path = spec_path.child("resources")
    if spec.os is not None and spec.os.name == "windows":
        return [forbidden(path, "may not be set for a windows pod")]
    errors: list[FieldError] = []
    if resources.claims:
        errors.append(forbidden(path.child("claims"), "claims may not be set for Resources at pod-level"))
    errors += validate_requirements(
        resources, path, validate_pod_resource_name, claim_names, options.indivisible_hugepages
    )
    for name, total in container_requests(spec).items():
        own = resources.requests.get(name)
        if own is not None and total > own:
            detail = f"must be greater than or equal to aggregate container requests of {total}"
            errors.append(invalid(path.child("requests").key(name), str(own), detail))
    for name, total in container_limits(spec).items():
        own = resources.limits.get(name) if is_hugepages(name) else None
        if own is not None and total > own:
            detail = f"must be greater than or equal to aggregate container limits of {total}"
            errors.append(invalid(path.child("limits").key(name), str(own), detail))
    for i, container in enumerate(spec.containers):
        for name, limit in container.resources.limits.items():
            own = resources.limits.get(name)
            if own is not None and limit > own:
                at = path.child("containers").index(i).key(name).child("limits")
                errors.append(invalid(at, str(limit), f"must be less than or equal to pod limits of {own}"))
    return errors
