"""The default roles and bindings of Kubernetes 1.37, as a table. `bootstrap_policy` reads it.

A role is one text, a line a rule: `verbs: resources @groups =names`. Verbs are separated by commas; `read` is get,
list and watch, `write` is create, delete, deletecollection, patch and update, `record` is what it takes to write
events. No group means the core group, which is called `core` among others; `@paths` means that the words are URL
paths. A line that is indented further goes on with the rule above it.

Rules about groups that are not served here are kept: they cost nothing, and backups compare equal.
"""

from __future__ import annotations

from typing import Final

CLUSTER_ROLES: Final = {
    "admin": "",
    "cluster-admin": """
        *: * @*
        *: * @paths
    """,
    "edit": "",
    "system:aggregate-to-admin": """
        create: localsubjectaccessreviews @authorization.k8s.io
        read,write: rolebindings roles @rbac.authorization.k8s.io
    """,
    "system:aggregate-to-edit": """
        read: pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy
        impersonate: serviceaccounts
        write: pods pods/attach pods/exec pods/portforward pods/proxy
        create: pods/eviction
        write: configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale
            secrets serviceaccounts services services/proxy
        create: serviceaccounts/token
        write: events @core,events.k8s.io
        write: daemonsets deployments deployments/rollback deployments/scale replicasets
            replicasets/scale statefulsets statefulsets/scale @apps
        write: horizontalpodautoscalers @autoscaling
        write: cronjobs jobs @batch
        write: daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies
            replicasets replicasets/scale replicationcontrollers/scale @extensions
        write: poddisruptionbudgets @policy
        write: ingresses networkpolicies @networking.k8s.io
        read,write: leases @coordination.k8s.io
        write: resourceclaims resourceclaimtemplates @resource.k8s.io
    """,
    "system:aggregate-to-view": """
        read: configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods
            replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status
        read: bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status
            resourcequotas resourcequotas/status
        read: namespaces
        read: events @core,events.k8s.io
        read: endpointslices @discovery.k8s.io
        read: controllerrevisions daemonsets daemonsets/status deployments deployments/scale
            deployments/status replicasets replicasets/scale replicasets/status statefulsets
            statefulsets/scale statefulsets/status @apps
        read: horizontalpodautoscalers horizontalpodautoscalers/status @autoscaling
        read: cronjobs cronjobs/status jobs jobs/status @batch
        read: daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses
            ingresses/status networkpolicies replicasets replicasets/scale replicasets/status
            replicationcontrollers/scale @extensions
        read: poddisruptionbudgets poddisruptionbudgets/status @policy
        read: ingresses ingresses/status networkpolicies @networking.k8s.io
        read: resourceclaims resourceclaims/status resourceclaimtemplates @resource.k8s.io
    """,
    "system:auth-delegator": """
        create: tokenreviews @authentication.k8s.io
        create: subjectaccessreviews @authorization.k8s.io
    """,
    "system:basic-user": """
        create: selfsubjectaccessreviews selfsubjectrulesreviews @authorization.k8s.io
        create: selfsubjectreviews @authentication.k8s.io
    """,
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient": """
        create: certificatesigningrequests/nodeclient @certificates.k8s.io
    """,
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": """
        create: certificatesigningrequests/selfnodeclient @certificates.k8s.io
    """,
    "system:certificates.k8s.io:kube-apiserver-client-approver": """
        approve: signers @certificates.k8s.io =kubernetes.io/kube-apiserver-client
    """,
    "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver": """
        approve: signers @certificates.k8s.io =kubernetes.io/kube-apiserver-client-kubelet
    """,
    "system:certificates.k8s.io:kubelet-serving-approver": """
        approve: signers @certificates.k8s.io =kubernetes.io/kubelet-serving
    """,
    "system:certificates.k8s.io:legacy-unknown-approver": """
        approve: signers @certificates.k8s.io =kubernetes.io/legacy-unknown
    """,
    "system:cluster-trust-bundle-discovery": "read: clustertrustbundles @certificates.k8s.io",
    "system:discovery": """
        get: /api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/
            @paths
    """,
    "system:heapster": """
        read: events namespaces nodes pods
        read: deployments @extensions
    """,
    "system:kube-aggregator": "read: endpoints services",
    "system:kube-controller-manager": """
        record: events @core,events.k8s.io
        create: leases @coordination.k8s.io
        get,update: leases @coordination.k8s.io =kube-controller-manager
        create: secrets serviceaccounts
        delete: secrets
        get: configmaps namespaces secrets serviceaccounts
        update: secrets serviceaccounts
        create: tokenreviews @authentication.k8s.io
        create: subjectaccessreviews @authorization.k8s.io
        list,watch: * @*
        create: serviceaccounts/token
    """,
    "system:kube-dns": "list,watch: endpoints services",
    "system:kube-scheduler": """
        record: events @core,events.k8s.io
        create: leases @coordination.k8s.io
        read,update: leases @coordination.k8s.io =kube-scheduler
        read,write: leasecandidates @coordination.k8s.io
        read: nodes
        read,delete: pods
        create: bindings pods/binding
        patch,update: pods/status
        read: replicationcontrollers services
        read: replicasets @apps,extensions
        read: statefulsets @apps
        read: poddisruptionbudgets @policy
        read: persistentvolumeclaims persistentvolumes
        create: tokenreviews @authentication.k8s.io
        create: subjectaccessreviews @authorization.k8s.io
        read: csinodes @storage.k8s.io
        read: volumeattachments @storage.k8s.io
        read: namespaces
        read: csidrivers @storage.k8s.io
        read: csistoragecapacities @storage.k8s.io
        read: deviceclasses @resource.k8s.io
        read,patch,update: resourceclaims @resource.k8s.io
        read,patch,update: resourceclaims/status @resource.k8s.io
        update: pods/finalizers
        read: resourceslices @resource.k8s.io
        create,delete: resourceclaims @resource.k8s.io
        read: devicetaintrules @resource.k8s.io
        patch,update: resourceclaims/binding @resource.k8s.io
    """,
    "system:kubelet-api-admin": """
        read: nodes
        proxy: nodes
        *: nodes/log nodes/metrics nodes/proxy nodes/stats
        *: nodes/configz nodes/healthz nodes/pods
    """,
    "system:monitoring": """
        get: /flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*
            /statusz @paths
        get: nodes/metrics
    """,
    "system:node": """
        create: tokenreviews @authentication.k8s.io
        create: localsubjectaccessreviews subjectaccessreviews @authorization.k8s.io
        read: services
        read,create: nodes
        patch,update: nodes/status
        patch,update: nodes
        record: events @core,events.k8s.io
        read: pods
        create,delete: pods
        patch,update: pods/status
        create: pods/eviction
        read: configmaps secrets
        get: persistentvolumeclaims persistentvolumes
        get: endpoints
        read,create: certificatesigningrequests @certificates.k8s.io
        create,delete,get,patch,update: leases @coordination.k8s.io
        get: volumeattachments @storage.k8s.io
        create: serviceaccounts/token
        get,patch,update: persistentvolumeclaims/status
        read: csidrivers @storage.k8s.io
        create,delete,get,patch,update: csinodes @storage.k8s.io
        read: runtimeclasses @node.k8s.io
        get: resourceclaims @resource.k8s.io
        deletecollection: resourceslices @resource.k8s.io
        read: clustertrustbundles @certificates.k8s.io
        get: serviceaccounts
        read,create: podcertificaterequests @certificates.k8s.io
    """,
    "system:node-bootstrapper": "read,create: certificatesigningrequests @certificates.k8s.io",
    "system:node-problem-detector": """
        get: nodes
        patch: nodes/status
        record: events @core,events.k8s.io
    """,
    "system:node-proxier": """
        list,watch: endpoints services
        read: nodes
        record: events @core,events.k8s.io
        list,watch: servicecidrs @networking.k8s.io
        list,watch: endpointslices @discovery.k8s.io
    """,
    "system:persistent-volume-provisioner": """
        read,create,delete: persistentvolumes
        read,update: persistentvolumeclaims
        read: storageclasses @storage.k8s.io
        watch: events
        record: events @core,events.k8s.io
    """,
    "system:public-info-viewer": "get: /healthz /livez /readyz /version /version/ @paths",
    "system:service-account-issuer-discovery": """
        get: /.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks
            /openid/v1/jwks/ @paths
    """,
    "system:volume-scheduler": """
        read,patch,update: persistentvolumes
        read: storageclasses @storage.k8s.io
        read,patch,update: persistentvolumeclaims
    """,
    "view": "",
}

#: Aggregated roles, and the roles that feed them: what they gather, and what they are gathered by.
AGGREGATES: Final = {"admin": "admin", "edit": "edit", "view": "view"}
FEEDS: Final = {
    "edit": "admin",
    "view": "edit",
    "system:aggregate-to-admin": "admin",
    "system:aggregate-to-edit": "edit",
    "system:aggregate-to-view": "view",
}

#: By namespace and name.
ROLES: Final = {
    ("kube-public", "system:controller:bootstrap-signer"): """
        read: configmaps
        update: configmaps =cluster-info
        record: events @core,events.k8s.io
    """,
    ("kube-system", "extension-apiserver-authentication-reader"): """
        read: configmaps =extension-apiserver-authentication
    """,
    ("kube-system", "system::leader-locking-kube-controller-manager"): """
        read,create,update: leases @coordination.k8s.io
        read,create,update: leasecandidates @coordination.k8s.io
    """,
    ("kube-system", "system::leader-locking-kube-scheduler"): """
        read,create,update: leases @coordination.k8s.io
        read,create,update: leasecandidates @coordination.k8s.io
    """,
    ("kube-system", "system:controller:bootstrap-signer"): "read: secrets",
    ("kube-system", "system:controller:cloud-provider"): "read,create: configmaps",
    ("kube-system", "system:controller:token-cleaner"): """
        read,delete: secrets
        record: events @core,events.k8s.io
    """,
}

#: Cluster roles bound under their own name. A subject is a kind and a name; service accounts are in kube-system.
CLUSTER_ROLE_BINDINGS: Final = {
    "cluster-admin": "Group system:masters",
    "system:basic-user": "Group system:authenticated",
    "system:cluster-trust-bundle-discovery": "Group system:serviceaccounts",
    "system:discovery": "Group system:authenticated",
    "system:kube-controller-manager": "User system:kube-controller-manager",
    "system:kube-dns": "ServiceAccount kube-dns",
    "system:kube-scheduler": "User system:kube-scheduler",
    "system:monitoring": "Group system:monitoring",
    # Nobody: nodes are the node authorizer's business. The binding stays so that it can be found and edited.
    "system:node": "",
    "system:node-proxier": "User system:kube-proxy",
    "system:public-info-viewer": "Group system:authenticated, Group system:unauthenticated",
    "system:service-account-issuer-discovery": "Group system:serviceaccounts",
    "system:volume-scheduler": "User system:kube-scheduler",
}

#: By namespace and name: the role, and its subjects.
ROLE_BINDINGS: Final = {
    ("kube-public", "system:controller:bootstrap-signer"): (
        "system:controller:bootstrap-signer",
        "ServiceAccount bootstrap-signer",
    ),
    ("kube-system", "system::extension-apiserver-authentication-reader"): (
        "extension-apiserver-authentication-reader",
        "User system:kube-controller-manager, User system:kube-scheduler",
    ),
    ("kube-system", "system::leader-locking-kube-controller-manager"): (
        "system::leader-locking-kube-controller-manager",
        "User system:kube-controller-manager, ServiceAccount kube-controller-manager, "
        "ServiceAccount leader-election-controller",
    ),
    ("kube-system", "system::leader-locking-kube-scheduler"): (
        "system::leader-locking-kube-scheduler",
        "User system:kube-scheduler, ServiceAccount kube-scheduler",
    ),
    ("kube-system", "system:controller:bootstrap-signer"): (
        "system:controller:bootstrap-signer",
        "ServiceAccount bootstrap-signer",
    ),
    ("kube-system", "system:controller:cloud-provider"): (
        "system:controller:cloud-provider",
        "ServiceAccount cloud-provider",
    ),
    ("kube-system", "system:controller:token-cleaner"): (
        "system:controller:token-cleaner",
        "ServiceAccount token-cleaner",
    ),
}

#: What feature gates that are off by default add, in this order: gate, role, rules.
GATED: Final = (
    ("GenericWorkload", "system:aggregate-to-edit", "write: podgroups workloads @scheduling.k8s.io"),
    (
        "GenericWorkload",
        "system:aggregate-to-view",
        "read: podgroups podgroups/status workloads @scheduling.k8s.io",
    ),
    (
        "GenericWorkload",
        "system:kube-scheduler",
        """
        read: podgroups @scheduling.k8s.io
        patch,update: podgroups/status @scheduling.k8s.io
        """,
    ),
    ("CompositePodGroup", "system:aggregate-to-edit", "write: compositepodgroups @scheduling.k8s.io"),
    (
        "CompositePodGroup",
        "system:aggregate-to-view",
        "read: compositepodgroups compositepodgroups/status @scheduling.k8s.io",
    ),
    (
        "CompositePodGroup",
        "system:kube-scheduler",
        """
        read: compositepodgroups @scheduling.k8s.io
        patch,update: compositepodgroups/status @scheduling.k8s.io
        """,
    ),
    ("EvictionRequestAPI", "system:aggregate-to-edit", "write: evictionrequests @lifecycle.k8s.io"),
    ("EvictionRequestAPI", "system:aggregate-to-view", "read: evictionrequests evictions @lifecycle.k8s.io"),
    ("CSIVolumeHealth", "system:node", "get,patch,update: csinodes/status @storage.k8s.io"),
    (
        "DRAWorkloadResourceClaims",
        "system:controller:resource-claim-controller",
        """
        read: podgroups @scheduling.k8s.io
        patch,update: podgroups/status @scheduling.k8s.io
        """,
    ),
    (
        "WorkloadWithJob",
        "system:controller:job-controller",
        "read,create,patch,update: podgroups workloads @scheduling.k8s.io",
    ),
)
