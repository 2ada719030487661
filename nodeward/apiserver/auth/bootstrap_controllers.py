"""The default roles of controllers, one a controller: `system:controller:<name>`, bound to its service account.

The words are those of `bootstrap_roles`.
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "system:controller:"

#: By the name of the controller.
CONTROLLER_ROLES: Final = {
    "attachdetach-controller": """
        list,watch: persistentvolumeclaims persistentvolumes
        read: nodes
        patch,update: nodes/status
        list,watch: pods
        record: events @core,events.k8s.io
        read,create,delete: volumeattachments @storage.k8s.io
        read: csidrivers @storage.k8s.io
        read: csinodes @storage.k8s.io
    """,
    "certificate-controller": """
        read,delete: certificatesigningrequests @certificates.k8s.io
        update: certificatesigningrequests/approval certificatesigningrequests/status
            @certificates.k8s.io
        approve: signers @certificates.k8s.io =kubernetes.io/kube-apiserver-client-kubelet
        sign: signers @certificates.k8s.io
            =kubernetes.io/kube-apiserver-client,kubernetes.io/kube-apiserver-client-kubelet,kubernetes.io/kubelet-serving,kubernetes.io/legacy-unknown
        create: subjectaccessreviews @authorization.k8s.io
        record: events @core,events.k8s.io
    """,
    "clusterrole-aggregation-controller": """
        escalate,get,list,patch,update,watch: clusterroles @rbac.authorization.k8s.io
    """,
    "cronjob-controller": """
        read,update: cronjobs @batch
        read,create,delete,patch,update: jobs @batch
        update: cronjobs/status @batch
        update: cronjobs/finalizers @batch
        delete,list,watch: pods
        record: events @core,events.k8s.io
    """,
    "daemon-set-controller": """
        read: daemonsets @apps,extensions
        update: daemonsets/status @apps,extensions
        update: daemonsets/finalizers @apps,extensions
        list,watch: nodes
        create,delete,list,patch,watch: pods
        create: pods/binding
        read,create,delete,patch,update: controllerrevisions @apps
        record: events @core,events.k8s.io
    """,
    "deployment-controller": """
        read,update: deployments @apps,extensions
        update: deployments/status @apps,extensions
        update: deployments/finalizers @apps,extensions
        read,create,delete,patch,update: replicasets @apps,extensions
        read,update: pods
        record: events @core,events.k8s.io
    """,
    "device-taint-eviction-controller": """
        read,delete: pods
        patch,update: pods/status
        read: resourceclaims @resource.k8s.io
        read: resourceslices @resource.k8s.io
        read: deviceclasses @resource.k8s.io
        record: events @core,events.k8s.io
        patch,update: devicetaintrules/status @resource.k8s.io
        read: devicetaintrules @resource.k8s.io
    """,
    "disruption-controller": """
        read: deployments @apps,extensions
        read: replicasets @apps,extensions
        read: replicationcontrollers
        read: poddisruptionbudgets @policy
        read: statefulsets @apps
        update: poddisruptionbudgets/status @policy
        patch,update: pods/status
        get: */scale @*
        record: events @core,events.k8s.io
    """,
    "endpoint-controller": """
        read: pods services
        read,create,delete,update: endpoints
        create: endpoints/restricted
        record: events @core,events.k8s.io
    """,
    "endpointslice-controller": """
        read: nodes pods services
        update: services/finalizers
        read,create,delete,update: endpointslices @discovery.k8s.io
        record: events @core,events.k8s.io
    """,
    "endpointslicemirroring-controller": """
        read: endpoints services
        update: services/finalizers
        update: endpoints/finalizers
        read,create,delete,update: endpointslices @discovery.k8s.io
        record: events @core,events.k8s.io
    """,
    "ephemeral-volume-controller": """
        read: pods
        update: pods/finalizers
        read,create: persistentvolumeclaims
        record: events @core,events.k8s.io
    """,
    "expand-controller": """
        read,patch,update: persistentvolumes
        patch,update: persistentvolumeclaims/status
        read: persistentvolumeclaims
        record: events @core,events.k8s.io
    """,
    "generic-garbage-collector": """
        read,delete,patch,update: * @*
        record: events @core,events.k8s.io
    """,
    "horizontal-pod-autoscaler": """
        read: horizontalpodautoscalers @autoscaling
        update: horizontalpodautoscalers/status @autoscaling
        get,update: */scale @*
        list,watch: pods
        list,watch: pods @metrics.k8s.io
        read: * @custom.metrics.k8s.io
        read: * @external.metrics.k8s.io
        record: events @core,events.k8s.io
    """,
    "job-controller": """
        read,patch,update: jobs @batch
        update: jobs/status @batch
        update: jobs/finalizers @batch
        create,delete,list,patch,watch: pods
        record: events @core,events.k8s.io
    """,
    "kube-apiserver-serving-clustertrustbundle-publisher": """
        attest: signers @certificates.k8s.io =kubernetes.io/kube-apiserver-serving
        create,delete,list,update,watch: clustertrustbundles @certificates.k8s.io
        record: events @core,events.k8s.io
    """,
    "legacy-service-account-token-cleaner": """
        get: configmaps =kube-apiserver-legacy-service-account-token-tracking
        delete,patch: secrets
    """,
    "namespace-controller": """
        read,delete: namespaces
        update: namespaces/finalize namespaces/status
        read,delete,deletecollection: * @*
    """,
    "node-controller": """
        read,delete,patch,update: nodes
        patch,update: nodes/status
        patch,update: pods/status
        read,delete: pods
        read: leases @coordination.k8s.io
        record: events @core,events.k8s.io
    """,
    # Unlike upstream, where this controller comes with a role of its own: what that role allows, and the pods that a
    # dry run tells of.
    "node-readiness-controller": """
        read,patch: nodes
        list,watch: pods
        read,patch,update: nodereadinessrules @readiness.node.x-k8s.io
        get,patch,update: nodereadinessrules/status @readiness.node.x-k8s.io
        update: nodereadinessrules/finalizers @readiness.node.x-k8s.io
        record: events @core,events.k8s.io
    """,
    "persistent-volume-binder": """
        read,create,delete,update: persistentvolumes
        update: persistentvolumes/status
        read,update: persistentvolumeclaims
        update: persistentvolumeclaims/status
        read,create,delete: pods
        read: storageclasses @storage.k8s.io
        list,watch: nodes
        record: events @core,events.k8s.io
        watch: events
    """,
    "pod-garbage-collector": """
        delete,list,watch: pods
        read: nodes
        patch: pods/status
    """,
    "podcertificaterequestcleaner": "read,delete: podcertificaterequests @certificates.k8s.io",
    "pv-protection-controller": """
        read,update: persistentvolumes
        record: events @core,events.k8s.io
    """,
    "pvc-protection-controller": """
        read,update: persistentvolumeclaims
        update: persistentvolumeclaims/status
        read: pods
        record: events @core,events.k8s.io
    """,
    "replicaset-controller": """
        read,update: replicasets @apps,extensions
        update: replicasets/status @apps,extensions
        update: replicasets/finalizers @apps,extensions
        create,delete,list,patch,watch: pods
        record: events @core,events.k8s.io
    """,
    "replication-controller": """
        read,update: replicationcontrollers
        update: replicationcontrollers/status
        update: replicationcontrollers/finalizers
        create,delete,list,patch,watch: pods
        record: events @core,events.k8s.io
    """,
    "resource-claim-controller": """
        read: pods
        update: pods/finalizers
        read,create,delete: resourceclaims @resource.k8s.io
        patch,update: resourceclaims resourceclaims/status @resource.k8s.io
        patch,update: pods/status
        record: events @core,events.k8s.io
        patch,update: resourceclaims/binding @resource.k8s.io
    """,
    "resourcequota-controller": """
        list,watch: * @*
        update: resourcequotas/status
        record: events @core,events.k8s.io
    """,
    "root-ca-cert-publisher": """
        create,update: configmaps
        record: events @core,events.k8s.io
    """,
    "route-controller": """
        list,watch: nodes
        patch: nodes/status
        record: events @core,events.k8s.io
    """,
    "selinux-warning-controller": """
        record: events @core,events.k8s.io
        read: persistentvolumes
        read: persistentvolumeclaims
        read: pods
        read: csidrivers @storage.k8s.io
    """,
    "service-account-controller": """
        create: serviceaccounts
        record: events @core,events.k8s.io
    """,
    "service-cidrs-controller": """
        read,patch,update: servicecidrs @networking.k8s.io
        patch,update: servicecidrs/finalizers @networking.k8s.io
        patch,update: servicecidrs/status @networking.k8s.io
        read: ipaddresses @networking.k8s.io
        record: events @core,events.k8s.io
    """,
    "service-controller": """
        read: services
        patch,update: services/status
        list,watch: nodes
        record: events @core,events.k8s.io
    """,
    "statefulset-controller": """
        list,watch: pods
        read: statefulsets @apps
        update: statefulsets/status @apps
        update: statefulsets/finalizers @apps
        create,delete,get,patch,update: pods
        read,create,delete,patch,update: controllerrevisions @apps
        read,create: persistentvolumeclaims
        delete,update: persistentvolumeclaims
        update: pods/finalizers
        record: events @core,events.k8s.io
    """,
    "storage-version-migrator-controller": """
        list,patch: * @*
        get: customresourcedefinitions @apiextensions.k8s.io
        patch: customresourcedefinitions/status @apiextensions.k8s.io
        update: storageversionmigrations/status @storagemigration.k8s.io
    """,
    "ttl-after-finished-controller": """
        read,delete: jobs @batch
        record: events @core,events.k8s.io
    """,
    "ttl-controller": """
        list,patch,update,watch: nodes
        record: events @core,events.k8s.io
    """,
    "validatingadmissionpolicy-status-controller": """
        read: validatingadmissionpolicies @admissionregistration.k8s.io
        get,patch,update: validatingadmissionpolicies/status @admissionregistration.k8s.io
        record: events @core,events.k8s.io
    """,
    "volumeattributesclass-protection-controller": """
        read: persistentvolumeclaims
        read: persistentvolumes
        read,update: volumeattributesclasses @storage.k8s.io
        record: events @core,events.k8s.io
    """,
}

#: Controllers that exist only behind a feature gate: gate, controller, rules.
GATED_CONTROLLERS: Final = (
    (
        "DRAResourcePoolStatus",
        "resourcepoolstatusrequest-controller",
        """
        read,delete: resourcepoolstatusrequests @resource.k8s.io
        patch,update: resourcepoolstatusrequests/status @resource.k8s.io
        read: resourceslices @resource.k8s.io
        read: resourceclaims @resource.k8s.io
        read: devicetaintrules @resource.k8s.io
        record: events @core,events.k8s.io
        """,
    ),
    (
        "GenericWorkload",
        "podgroup-protection-controller",
        """
        read,update: podgroups @scheduling.k8s.io
        read: pods
        """,
    ),
)
