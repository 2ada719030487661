"""The official `kubernetes` client: typed, watching, and dynamic with server-side apply."""

from __future__ import annotations

import json
import sys
from typing import Any

import kubernetes
import kubernetes.dynamic.exceptions

from tests.e2e.clients.objects import config_map, deployment, pod

# Not all of the library is typed; what the test is about is what it does.
k8s: Any = kubernetes


def refusal(function: Any, *arguments: Any, **options: Any) -> tuple[int, str]:
    try:
        function(*arguments, **options)
    except (k8s.client.ApiException, k8s.dynamic.exceptions.DynamicApiError) as error:
        return error.status, json.loads(error.body)["reason"]
    raise AssertionError("it was not refused")


def works_with_types(namespace: str) -> None:
    core, apps = k8s.client.CoreV1Api(), k8s.client.AppsV1Api()
    assert k8s.client.VersionApi().get_code().git_version == "v1.37.0"
    made = core.create_namespaced_pod(namespace, pod("one"))
    assert (made.status.phase, made.spec.service_account_name) == ("Pending", "default")
    assert refusal(core.create_namespaced_pod, namespace, pod("one")) == (409, "AlreadyExists")
    read = core.read_namespaced_pod("one", namespace)
    assert read.to_dict() == made.to_dict()
    read.metadata.labels["more"] = "x"
    replaced = core.replace_namespaced_pod("one", namespace, read)
    assert replaced.metadata.labels == {"app": "one", "more": "x"}
    assert refusal(core.replace_namespaced_pod, "one", namespace, made) == (409, "Conflict")
    patched = core.patch_namespaced_pod("one", namespace, {"metadata": {"labels": {"more": None}}})
    assert patched.metadata.labels == {"app": "one"}
    listed = core.list_namespaced_pod(namespace, label_selector="app=one", limit=5)
    assert [item.metadata.name for item in listed.items] == ["one"]
    core.delete_namespaced_pod("one", namespace)
    assert core.list_namespaced_pod(namespace).items == []
    assert refusal(core.read_namespaced_pod, "one", namespace) == (404, "NotFound")

    web = apps.create_namespaced_deployment(namespace, deployment("web"))
    assert web.spec.strategy.type == "RollingUpdate"
    scaled = apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 4}})
    assert scaled.spec.replicas == 4
    assert apps.read_namespaced_deployment_status("web", namespace).spec.replicas == 4
    assert apps.delete_namespaced_deployment("web", namespace)["status"] == "Success"


def watches(namespace: str) -> None:
    core = k8s.client.CoreV1Api()
    start = core.list_namespaced_pod(namespace).metadata.resource_version
    core.create_namespaced_pod(namespace, pod("one"))
    seen = []
    watching = k8s.watch.Watch()
    for event in watching.stream(
        core.list_namespaced_pod, namespace, resource_version=start, timeout_seconds=60
    ):
        found = event["object"].metadata
        seen.append((event["type"], found.name, found.labels["app"]))
        if len(seen) == 1:
            core.patch_namespaced_pod("one", namespace, {"metadata": {"labels": {"app": "two"}}})
        elif len(seen) == 2:
            core.delete_namespaced_pod("one", namespace)
        else:
            watching.stop()
    assert seen == [("ADDED", "one", "one"), ("MODIFIED", "one", "two"), ("DELETED", "one", "two")], seen


def applies(namespace: str) -> None:
    dynamic = k8s.dynamic.DynamicClient(k8s.client.ApiClient())
    config_maps = dynamic.resources.get(api_version="v1", kind="ConfigMap")

    def apply(manager: str, value: str, **options: Any) -> str:
        body = config_map("one", {"a": value})
        applied = config_maps.server_side_apply(
            body=body, namespace=namespace, field_manager=manager, **options
        )
        return str(applied.data.a)

    assert apply("first", "1") == "1"
    assert apply("first", "2") == "2"
    assert refusal(apply, "second", "3") == (409, "Conflict")
    assert apply("second", "3", force_conflicts=True) == "3"
    events = config_maps.watch(namespace=namespace, name="one", timeout=1)
    assert [(event["type"], event["object"].data.a) for event in events] == [("ADDED", "3")]


if __name__ == "__main__":
    k8s.config.load_kube_config()
    works_with_types(sys.argv[1])
    watches(sys.argv[1])
    applies(sys.argv[1])
