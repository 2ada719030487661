"""Which service account tokens a kubelet may request: bound to a pod on its node, for an audience that pod names.

Unlike upstream: a node cannot be allowed further audiences by authorization (`request-serviceaccounts-token-audience`);
only those that the pod's volumes and CSI drivers name are allowed.
"""

from __future__ import annotations

from collections.abc import Iterator

from nodeward.api.authentication_v1 import TokenRequest
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeClaim
from nodeward.api.core_v1.volume import Volume
from nodeward.api.errors import not_found
from nodeward.api.storage_v1 import CSIDriver
from nodeward.apiserver.admission.plugin import Write
from nodeward.apiserver.environment import Environment
from nodeward.base.fielderror import quote
from nodeward.base.invariant import InvariantBroken


def check_token(node: str, write: Write, env: Environment) -> None:
    """Refuse a TokenRequest that the kubelet of `node` may not make."""
    request = write.new if write.sent is None else write.sent
    if not isinstance(request, TokenRequest):
        raise InvariantBroken("serviceaccounts/token is written with a TokenRequest")
    bound = request.spec.bound_object_ref
    if bound is None or (bound.api_version, bound.kind) != ("v1", "Pod") or not bound.name:
        raise write.refuse("node requested token not bound to a pod")
    if not bound.uid:
        raise write.refuse("node requested token with a pod binding without a uid")
    pod = env.peek(Pod, bound.name, write.namespace)
    if pod is None:
        raise not_found("", "pods", bound.name)
    if bound.uid != pod.metadata.uid:
        raise write.refuse(
            f"the UID in the bound object reference ({bound.uid}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
    if pod.spec.node_name != node:
        raise write.refuse("node requested token bound to a pod scheduled on a different node")
    if env.gates.enabled("ServiceAccountNodeAudienceRestriction"):
        _check_audience(write, request, pod, env)


def _check_audience(write: Write, request: TokenRequest, pod: Pod, env: Environment) -> None:
    audiences = request.spec.audiences
    if len(audiences) > 1:
        raise write.refuse("node may only request 0 or 1 audiences")
    audience = audiences[0] if audiences else ""
    if audience not in _audiences(pod, env):
        raise write.refuse(
            f"{write.user.name} is not authorized to request tokens for audience {quote(audience)}"
        )


def _audiences(pod: Pod, env: Environment) -> Iterator[str]:
    for volume in pod.spec.volumes:
        sources = volume.projected.sources if volume.projected is not None else ()
        for source in sources:
            if source.service_account_token is not None:
                yield source.service_account_token.audience
        driver = env.peek(CSIDriver, name) if (name := _driver(volume, pod, env)) else None
        if driver is not None:
            yield from (wanted.audience for wanted in driver.spec.token_requests)


def _driver(volume: Volume, pod: Pod, env: Environment) -> str:
    """Return the CSI driver behind a volume, also through a claim and its persistent volume."""
    if volume.csi is not None:
        return volume.csi.driver
    if volume.ephemeral is not None:
        name = f"{pod.metadata.name}-{volume.name}"
    elif volume.persistent_volume_claim is not None:
        name = volume.persistent_volume_claim.claim_name
    else:
        return ""
    claim = env.peek(PersistentVolumeClaim, name, pod.metadata.namespace)
    bound = env.peek(PersistentVolume, claim.spec.volume_name) if claim is not None else None
    return bound.spec.csi.driver if bound is not None and bound.spec.csi is not None else ""
