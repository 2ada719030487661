"""The control loops that make the cluster become what its objects say. Adding one is a file and a line here.

`runner` starts what is listed; the names are those of kube-controller-manager's service accounts, so that each
controller has the rights of its bootstrap role and no others.
"""

from __future__ import annotations

from nodeward.controllers import (
    claim_protection,
    disruption,
    garbage_collector,
    namespace,
    pod_garbage_collector,
    replicaset,
    resource_quota,
    root_ca,
    service_account,
    ttl_after_finished,
    volume_protection,
)
from nodeward.controllers.controller import ControllerDescriptor
from nodeward.controllers.cronjob.controller import CronJobController
from nodeward.controllers.daemonset.controller import DaemonSetController
from nodeward.controllers.deployment.controller import DeploymentController
from nodeward.controllers.device_taint_eviction import controller as device_taint_eviction
from nodeward.controllers.job.controller import JobController
from nodeward.controllers.node_lifecycle.controller import NodeLifecycleController
from nodeward.controllers.readiness_rules.controller import ReadinessRuleController
from nodeward.controllers.resource_claim import controller as resource_claim
from nodeward.controllers.statefulset.controller import StatefulSetController
from nodeward.controllers.taint_eviction.controller import TaintEvictionController

CONTROLLERS: tuple[ControllerDescriptor, ...] = (
    ControllerDescriptor("service-account-controller", service_account.ServiceAccountController),
    ControllerDescriptor("root-ca-cert-publisher", root_ca.publisher),
    ControllerDescriptor("namespace-controller", namespace.NamespaceController),
    ControllerDescriptor(
        "generic-garbage-collector", garbage_collector.GarbageCollector, "garbage-collector-controller"
    ),
    ControllerDescriptor("pod-garbage-collector", pod_garbage_collector.PodGarbageCollector),
    ControllerDescriptor("disruption-controller", disruption.DisruptionController, "controllermanager"),
    ControllerDescriptor("resourcequota-controller", resource_quota.ResourceQuotaController),
    ControllerDescriptor("resource-claim-controller", resource_claim.make, "resource_claim"),
    ControllerDescriptor("ttl-after-finished-controller", ttl_after_finished.TtlAfterFinishedController),
    ControllerDescriptor(
        "persistentvolumeclaim-protection-controller",
        claim_protection.ClaimProtectionController,
        account="pvc-protection-controller",
    ),
    ControllerDescriptor(
        "persistentvolume-protection-controller",
        volume_protection.VolumeProtectionController,
        account="pv-protection-controller",
    ),
    ControllerDescriptor("replicaset-controller", replicaset.replica_sets),
    ControllerDescriptor("replication-controller", replicaset.replication_controllers),
    ControllerDescriptor("deployment-controller", DeploymentController),
    ControllerDescriptor("daemon-set-controller", DaemonSetController, "daemonset-controller"),
    ControllerDescriptor("statefulset-controller", StatefulSetController),
    ControllerDescriptor("job-controller", JobController),
    ControllerDescriptor("cronjob-controller", CronJobController),
    ControllerDescriptor(
        "node-lifecycle-controller", NodeLifecycleController, "node-controller", "node-controller"
    ),
    ControllerDescriptor("node-readiness-controller", ReadinessRuleController),
    ControllerDescriptor("taint-eviction-controller", TaintEvictionController, account="node-controller"),
    ControllerDescriptor("device-taint-eviction-controller", device_taint_eviction.make),
)
