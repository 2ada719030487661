"""Strategies for trees of a kind, made from its schema, and a pod like many others."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from nodeward.api.apply.ownership import empty_tree
from nodeward.api.core_v1.pod import Pod
from nodeward.api.schema import Schema, Shape, schema_of

POD_JSON = b"""{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-7d9c","generateName":"web-","namespace":"prod",
"uid":"0b1f6c4e-8c43-4a3a-9a0e-0d9a2f9c2c11","creationTimestamp":"2026-11-15T06:47:47Z",
"labels":{"app":"web","pod-template-hash":"7d9c","tier":"front"},"annotations":{"prometheus.io/scrape":"true"},
"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-7d9c",
"uid":"11111111-8c43-4a3a-9a0e-0d9a2f9c2c11","controller":true,"blockOwnerDeletion":true}]},
"spec":{"volumes":[{"name":"data","emptyDir":{}},{"name":"config","configMap":{"name":"web","defaultMode":420}}],
"containers":[{"name":"web","image":"nginx:1.27","args":["-g","daemon off;"],
"ports":[{"containerPort":80,"protocol":"TCP"},{"name":"metrics","containerPort":9113,"protocol":"TCP"}],
"env":[{"name":"A","value":"1"},{"name":"NODE","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"spec.nodeName"}}}],
"resources":{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"100m","memory":"128Mi"}},
"volumeMounts":[{"name":"data","mountPath":"/data"},{"name":"config","mountPath":"/etc/web","readOnly":true}],
"readinessProbe":{"httpGet":{"path":"/","port":80,"scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,
"successThreshold":1,"failureThreshold":3},
"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],
"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"default",
"serviceAccount":"default","securityContext":{},"schedulerName":"default-scheduler","enableServiceLinks":true,
"nodeSelector":{"disk":"ssd"},"tolerations":[{"key":"a","operator":"Exists"}]},"status":{}}"""

POD = schema_of(Pod)


def pod_tree() -> dict[str, Any]:
    tree: dict[str, Any] = msgspec.json.decode(POD_JSON)
    return tree


_SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: st.sampled_from(["", "a", "b", "<x>", 'q"\\', "é"]),
    int: st.integers(-1, 120),
    bool: st.booleans(),
    float: st.sampled_from([0.5, 2.0]),
}
_NAMES = st.sampled_from(["a", "b/c", "d%s", "é", '"'])


def trees(schema: Schema, depth: int = 6, max_fields: int = 5) -> st.SearchStrategy[dict[str, Any]]:
    """Trees as an encoded object of the type could look: what is always written is there."""

    def struct(inner: Schema, left: int) -> st.SearchStrategy[dict[str, Any]]:
        always = empty_tree(inner.python_type)
        optional = sorted(name for name in inner.fields if name not in always)
        required = {name: values(inner.fields[name], left - 1) for name in always}

        def filled(chosen: list[str]) -> st.SearchStrategy[dict[str, Any]]:
            return st.fixed_dictionaries(
                required | {name: values(inner.fields[name], left - 1) for name in chosen}
            )

        return (
            st.lists(st.sampled_from(optional), unique=True, max_size=max_fields).flatmap(filled)
            if optional and left > 0
            else st.fixed_dictionaries(required)
        )

    def values(inner: Schema, left: int) -> st.SearchStrategy[Any]:
        match inner.shape:
            case Shape.STRUCT:
                return st.deferred(lambda: struct(inner, left))
            case Shape.MAP if inner.item is not None:
                return st.dictionaries(_NAMES, values(inner.item, left - 1), max_size=2)
            case Shape.LIST if inner.item is not None:
                items = values(inner.item, left - 1)
                return st.lists(items, max_size=3 if left > 0 else 0)
            case Shape.SCALAR:
                return _SCALARS.get(inner.python_type, _SCALARS[str])
            case _:
                return st.just({"any": [1, None]})

    return struct(schema, depth)
