"""Nodes and pods made at random from few values, so that they meet: JSON, as a client would write it."""

from __future__ import annotations

from random import Random
from typing import Any, TypeVar

Tree = dict[str, Any]
T = TypeVar("T")

MI = 1024 * 1024
GPU = "example.com/gpu"
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
#: An image has one size wherever it is.
IMAGES = {"busybox:latest": 4 * MI, "web:1": 300 * MI, "reg.example:5000/big:2": 2500 * MI}
APPS = ("a", "b", "c")


class Maker:
    """Everything that is made with one generator."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def maybe(self, share: float) -> bool:
        return self._random.random() < share

    def one(self, *choices: T) -> T:
        return self._random.choice(choices)

    def some(self, most: int, *choices: T) -> list[T]:
        return self._random.sample(choices, self._random.randint(0, min(most, len(choices))))

    def below(self, number: int) -> int:
        return self._random.randrange(number)

    # -- nodes

    def node(self, name: str) -> Tree:
        labels = {}
        if self.maybe(0.95):
            labels[HOSTNAME] = name
        if self.maybe(0.8):
            labels[ZONE] = self.one("z1", "z2", "z3")
        if self.maybe(0.6):
            labels["disk"] = self.one("ssd", "hdd", "7", "12")
        allocatable = {
            "cpu": self.one("1", "2", "4", "3500m"),
            "memory": self.one("1Gi", "4Gi", "16Gi"),
            "pods": self.one("2", "6", "110"),
        }
        if self.maybe(0.5):
            allocatable["ephemeral-storage"] = self.one("10Gi", "100Gi")
        if self.maybe(0.4):
            allocatable[GPU] = self.one("1", "4")
        if self.maybe(0.05):
            del allocatable[self.one("cpu", "memory")]
        gates: list[Tree] = [{"conditionType": "example.com/net"}] if self.maybe(0.15) else []
        # By the name, so that what is drawn after it does not depend on it.
        action = (None, "Taint", "", "BypassWithWarning")[sum(map(ord, name)) % 4]
        for gate in gates if action is not None else ():
            gate["failureAction"] = action
            gate["readinessTaint"] = {"key": "dedicated", "effect": "NoSchedule"}
        spec: Tree = {
            "taints": [
                {
                    "key": self.one("dedicated", "sla"),
                    "value": self.one("", "web", "5", "900", "-3"),
                    "effect": self.one("NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute"),
                }
                for _ in range(self.one(0, 0, 0, 1, 2))
            ],
            "unschedulable": self.maybe(0.08),
            "readinessGates": gates,
        }
        conditions = [{"type": "Ready", "status": self.one("True", "True", "True", "False")}]
        if self.maybe(0.6):
            conditions.append({"type": "example.com/net", "status": self.one("True", "False", "Unknown")})
            if self.maybe(0.5):
                conditions[-1]["reason"] = "TimeoutExceeded"
        status = {
            "allocatable": allocatable,
            "conditions": conditions,
            "images": [{"names": [each], "sizeBytes": IMAGES[each]} for each in self.some(3, *IMAGES)],
            "declaredFeatures": sorted(
                self.some(3, "VolumeBindMountOptions", "RestartAllContainersOnContainerExits", "Unheard")
                if self.maybe(0.4)
                else ["RestartAllContainersOnContainerExits", "VolumeBindMountOptions"]
            ),
        }
        return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}

    # -- pods

    def requests(self) -> Tree:
        found = {}
        if self.maybe(0.7):
            found["cpu"] = self.one("0", "100m", "250m", "1", "2")
        if self.maybe(0.7):
            found["memory"] = self.one("0", "64Mi", "512Mi", "2Gi")
        if self.maybe(0.1):
            found["ephemeral-storage"] = self.one("1Gi", "20Gi")
        if self.maybe(0.08):
            found[GPU] = self.one("1", "2")
        return found

    def pod(self, name: str) -> Tree:
        """A pod that waits, with a spec of its own."""
        metadata: Tree = {"name": name, "uid": name, "namespace": self.one("default", "default", "other")}
        metadata["labels"] = {"app": self.one(*APPS)}
        if self.maybe(0.3):
            metadata["labels"]["rev"] = self.one("1", "2")
        if self.maybe(0.1):
            owner = {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "name": "d",
                "uid": "d",
                "controller": True,
            }
            metadata["ownerReferences"] = [owner]
        container: Tree = {"name": "main", "image": self.one("busybox", "web:1", "other:3")}
        container["resources"] = {"requests": self.requests()}
        if self.maybe(0.15):
            container["ports"] = [self.port() for _ in range(self.one(1, 2))]
        if self.maybe(0.05):
            container["restartPolicy"] = "Never"
            exit_codes = {"operator": "In", "values": [1]}
            container["restartPolicyRules"] = [{"action": "RestartAllContainers", "exitCodes": exit_codes}]
        spec: Tree = {"containers": [container], "tolerations": self.tolerations()}
        if self.maybe(0.3):
            spec["initContainers"] = [self.init_container(number) for number in range(self.one(1, 2))]
        if self.maybe(0.15):
            spec["nodeSelector"] = {"disk": self.one("ssd", "hdd", "7")}
        if self.maybe(0.02):
            spec["nodeName"] = self.one("n0", "n1", "gone")
        if self.maybe(0.05):
            spec["overhead"] = {"cpu": "50m", "memory": "10Mi"}
        if self.maybe(0.05):
            spec["resources"] = {"requests": {"cpu": self.one("1", "3")}}
        if self.maybe(0.1):
            spec["volumes"] = [{"name": "i", "image": {"reference": self.one("web:1", "nowhere:1")}}]
        affinity = self.affinity()
        if affinity:
            spec["affinity"] = affinity
        if self.maybe(0.25):
            spec["topologySpreadConstraints"] = [self.constraint() for _ in range(self.one(1, 1, 2))]
        return {"metadata": metadata, "spec": spec}

    def init_container(self, number: int) -> Tree:
        found: Tree = {
            "name": f"init{number}",
            "image": self.one("busybox:latest", "reg.example:5000/big:2"),
            "resources": {"requests": self.requests()},
        }
        if self.maybe(0.4):
            found["restartPolicy"] = "Always"
        if self.maybe(0.2):
            found["ports"] = [self.port()]
        if self.maybe(0.2):
            found["volumeMounts"] = [{"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}]
        return found

    def port(self) -> Tree:
        return {
            "containerPort": 80,
            "hostPort": self.one(0, 8080, 9090),
            "hostIP": self.one("", "10.0.0.1", "10.0.0.2"),
            "protocol": self.one("TCP", "UDP"),
        }

    def tolerations(self) -> list[Tree]:
        if self.maybe(0.05):
            return [{"operator": "Exists"}]
        found: list[Tree] = []
        for _ in range(self.one(0, 0, 1, 2)):
            operator = self.one("Equal", "Exists", "Lt", "Gt")
            found.append(
                {
                    "key": self.one("dedicated", "sla", "sla", "node.kubernetes.io/unschedulable"),
                    "operator": operator,
                    "value": {"Equal": self.one("", "web"), "Exists": ""}.get(
                        operator, self.one("100", "-5")
                    ),
                    "effect": self.one("", "", "NoSchedule", "PreferNoSchedule", "NoExecute"),
                }
            )
        return found

    def affinity(self) -> Tree:
        found: Tree = {}
        if self.maybe(0.25):
            inside: Tree = {}
            if self.maybe(0.5):
                terms = [self.term() for _ in range(self.one(1, 1, 2))]
                inside["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
            if self.maybe(0.7):
                inside["preferredDuringSchedulingIgnoredDuringExecution"] = [
                    {"weight": self.one(1, 30, 100), "preference": self.term()} for _ in range(self.one(1, 2))
                ]
            found["nodeAffinity"] = inside
        for kind in ("podAffinity", "podAntiAffinity"):
            if self.maybe(0.12):
                inside = {}
                if self.maybe(0.5):
                    inside["requiredDuringSchedulingIgnoredDuringExecution"] = [
                        self.pod_term() for _ in range(self.one(1, 1, 2))
                    ]
                if self.maybe(0.6):
                    inside["preferredDuringSchedulingIgnoredDuringExecution"] = [
                        {"weight": self.one(1, 50, 100), "podAffinityTerm": self.pod_term()}
                    ]
                found[kind] = inside
        return found

    def term(self) -> Tree:
        wishes: list[Tree] = [
            {"key": "disk", "operator": "In", "values": self.one(["ssd"], ["hdd", "7"], ["none"])},
            {"key": ZONE, "operator": "NotIn", "values": self.one(["z1"], ["z2", "z3"])},
            {"key": self.one("disk", ZONE), "operator": self.one("Exists", "DoesNotExist")},
            {"key": "disk", "operator": self.one("Gt", "Lt"), "values": [self.one("9", "x")]},
        ]
        term: Tree = {"matchExpressions": self.some(2, *wishes)}
        if self.maybe(0.15):
            term["matchFields"] = [
                {
                    "key": "metadata.name",
                    "operator": self.one("In", "NotIn"),
                    "values": [self.one("n0", "n1")],
                }
                for _ in range(self.one(1, 1, 2))
            ]
        return term

    def selector(self) -> Tree | None:
        return self.one(
            {"matchLabels": {"app": self.one(*APPS)}},
            {"matchLabels": {"app": self.one(*APPS)}},
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [self.one(*APPS)]}]},
            {"matchExpressions": [{"key": "rev", "operator": self.one("Exists", "DoesNotExist")}]},
            {},
            None,
        )

    def pod_term(self) -> Tree:
        found: Tree = {"topologyKey": self.one(ZONE, HOSTNAME, "disk")}
        selector = self.selector()
        if selector is not None:
            found["labelSelector"] = selector
        if self.maybe(0.2):
            found["namespaces"] = self.one(["other"], ["default", "other"], ["nowhere"])
        if self.maybe(0.2):
            found["namespaceSelector"] = self.one({}, {"matchLabels": {"team": "x"}})
        return found

    def constraint(self) -> Tree:
        found: Tree = {
            "maxSkew": self.one(1, 1, 2, 5),
            "topologyKey": self.one(ZONE, ZONE, HOSTNAME, "disk"),
            "whenUnsatisfiable": self.one("DoNotSchedule", "ScheduleAnyway"),
        }
        selector = self.selector()
        if selector is not None:
            found["labelSelector"] = selector
            if self.maybe(0.2):
                found["matchLabelKeys"] = ["rev"]
        if found["whenUnsatisfiable"] == "DoNotSchedule" and self.maybe(0.3):
            found["minDomains"] = self.one(2, 3, 4)
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if self.maybe(0.25):
                found[policy] = self.one("Honor", "Ignore")
        return found

    # -- pods that run

    def placed(self, pod: Tree, node: str) -> Tree:
        """The pod on a node, perhaps in the middle of a resize, perhaps about to go."""
        metadata, status = dict(pod["metadata"]), {}
        if self.maybe(0.05):
            metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
        if self.maybe(0.15):
            mine: Tree = {"name": "main"}
            if self.maybe(0.7):
                mine["allocatedResources"] = {"cpu": self.one("200m", "1"), "memory": "1Gi"}
            if self.maybe(0.5):
                mine["resources"] = {"requests": {"cpu": self.one("300m", "1500m"), "memory": "128Mi"}}
            status["containerStatuses"] = [mine]
        return {"metadata": metadata, "spec": {**pod["spec"], "nodeName": node}, "status": status}
