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
from nodeward.controllers.controller import Entry
from nodeward.controllers.cronjob.controller import CronJobController
from nodeward.controllers.daemonset.controller import DaemonSetController
from nodeward.controllers.deployment.controller import DeploymentController
from nodeward.controllers.job.controller import JobController
from nodeward.controllers.node_lifecycle.controller import NodeLifecycleController
from nodeward.controllers.readiness_rules.controller import ReadinessRuleController
from nodeward.controllers.statefulset.controller import StatefulSetController
from nodeward.controllers.taint_eviction.controller import TaintEvictionController

CONTROLLERS: tuple[Entry, ...] = (
    Entry("service-account-controller", service_account.ServiceAccountController),
    Entry("root-ca-cert-publisher", root_ca.publisher),
    Entry("namespace-controller", namespace.NamespaceController),
    Entry("generic-garbage-collector", garbage_collector.GarbageCollector, "garbage-collector-controller"),
    Entry("pod-garbage-collector", pod_garbage_collector.PodGarbageCollector),
    Entry("disruption-controller", disruption.DisruptionController, "controllermanager"),
    Entry("resourcequota-controller", resource_quota.ResourceQuotaController),
    Entry("ttl-after-finished-controller", ttl_after_finished.TtlAfterFinishedController),
    Entry(
        "persistentvolumeclaim-protection-controller",
        claim_protection.ClaimProtectionController,
        account="pvc-protection-controller",
    ),
    Entry(
        "persistentvolume-protection-controller",
        volume_protection.VolumeProtectionController,
        account="pv-protection-controller",
    ),
    Entry("replicaset-controller", replicaset.replica_sets),
    Entry("replication-controller", replicaset.replication_controllers),
    Entry("deployment-controller", DeploymentController),
    Entry("daemon-set-controller", DaemonSetController, "daemonset-controller"),
    Entry("statefulset-controller", StatefulSetController),
    Entry("job-controller", JobController),
    Entry("cronjob-controller", CronJobController),
    Entry("node-lifecycle-controller", NodeLifecycleController, "node-controller", "node-controller"),
    Entry("node-readiness-controller", ReadinessRuleController),
    Entry("taint-eviction-controller", TaintEvictionController, account="node-controller"),
)
