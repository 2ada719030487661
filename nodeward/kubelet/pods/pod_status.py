"""The whole status of a pod, as its node writes it.

In goes the pod's state, out comes a `PodStatus` that can be sent as it is: what the node owns is fresh, what others own
(claims, nominations, volume health) is passed on from the pod as the API last showed it.

What must stay true: the same state gives the same status, whenever it is asked for; a pod that was refused shows no
containers; parts of the status are shared with the pod's life, so nobody may change them.
"""

from __future__ import annotations

from nodeward.api.core_v1.container import ResourceRequirements
from nodeward.api.core_v1.pod_phase import FAILED
from nodeward.api.core_v1.pod_status import ContainerStatus, HostIP, PodIP, PodStatus
from nodeward.kubelet.pods.conditions import pod_conditions
from nodeward.kubelet.pods.container_status import container_status
from nodeward.kubelet.pods.phase import phase_of
from nodeward.kubelet.pods.resizing import allocated_pod, shown
from nodeward.kubelet.pods.resource_info import PodResourceInfo, with_info
from nodeward.kubelet.pods.state import PodState
from nodeward.rules.pod_resources import pod_limits, pod_requests
from nodeward.rules.qos import qos_class


def pod_status(state: PodState, now_ns: int) -> PodStatus:
    """The status now; the same object as before if nothing has happened since."""
    if state.status is None:
        state.status = _made(state, now_ns)
        state.conditions = state.status.conditions
    return state.status


def _made(state: PodState, now_ns: int) -> PodStatus:
    pod, rules = state.pod, state.rules
    api = pod.status
    if state.is_rejected:
        inits, mains, ephemerals = [], [], []
    else:
        inits = [container_status(state, life) for life in state.inits]
        mains = [container_status(state, life) for life in state.mains]
        ephemerals = [container_status(state, life) for life in state.ephemerals]
    phase = phase_of(state)
    # A pod that was told to fail is not ready, although it still runs and is not said to have failed yet.
    meant = FAILED if state.is_failed else phase
    conditions = pod_conditions(state, inits, mains, meant, now_ns)
    if len(mains) > 1:
        mains.sort(key=_by_name)
    if len(ephemerals) > 1:
        ephemerals.sort(key=_by_name)
    status = PodStatus(
        observed_generation=pod.metadata.generation if rules.has_generation else 0,
        phase=phase,
        conditions=conditions,
        nominated_node_name=api.nominated_node_name,
        start_time=state.start_time,
        init_container_statuses=inits,
        container_statuses=mains,
        ephemeral_container_statuses=ephemerals,
        qos_class=api.qos_class or qos_class(pod.spec),
        resource_claim_statuses=api.resource_claim_statuses,
        extended_resource_claim_status=api.extended_resource_claim_status,
        node_allocatable_resource_claim_statuses=api.node_allocatable_resource_claim_statuses,
        volume_health=api.volume_health,
    )
    if state.final_phase or not state.is_failed:
        # Why it fails is said together with the failure, when nothing runs any more.
        status.reason, status.message = state.reason, state.message
    if state.is_rejected:
        return status
    hosts = rules.host_ips
    if hosts:
        status.host_ip = hosts[0]
        status.host_ips = [HostIP(ip=each) for each in hosts]
    ips = state.ips or (hosts if pod.spec.host_network else ())
    if ips:
        status.pod_ip = ips[0]
        status.pod_ips = [PodIP(ip=each) for each in ips]
    if rules.has_pod_resources:
        if state.resources is None:
            _sum_up(state)
        status.allocated_resources = state.allocated
        status.resources = state.resources
    return status


def _by_name(status: ContainerStatus) -> str:
    return status.name


def _sum_up(state: PodState) -> None:
    """What the pod as a whole was promised. With nothing asked for, nothing is summed up."""
    pod = state.pod
    lives = (*state.inits, *state.mains)
    has_any = any(life.allocated.requests or life.allocated.limits for life in lives)
    if not has_any and pod.spec.resources is None and not pod.spec.overhead:
        state.allocated = {}
        state.resources = ResourceRequirements()
        return
    pod = allocated_pod(state)
    state.allocated = pod_requests(pod)
    found = {life.name: shown(state, life) for life in lives}
    if any(found[life.name] is not life.allocated for life in lives):
        pod = with_info(pod, PodResourceInfo(found, pod.spec.resources))
    state.resources = ResourceRequirements(requests=pod_requests(pod), limits=pod_limits(pod))
