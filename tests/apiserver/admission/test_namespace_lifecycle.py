"""Nothing is created in a namespace that is missing or going away."""

from __future__ import annotations

import pytest

from nodeward.api.authorization_v1 import LocalSubjectAccessReview
from nodeward.api.core_v1.cluster import ConfigMap
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Binding
from nodeward.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from tests.apiserver.admission.world import (
    admitted,
    create,
    delete,
    forbidden,
    meta,
    namespace,
    pod,
    refused,
    send,
    update,
    world,
)


def test_an_object_in_a_missing_namespace_is_answered_with_not_found() -> None:
    error = refused(NamespaceLifecycle(world()), create(pod(namespace="nowhere")))
    assert (error.code, error.reason, str(error)) == (404, "NotFound", 'namespaces "nowhere" not found')


def test_nothing_new_is_created_in_a_namespace_that_is_being_emptied() -> None:
    plugin = NamespaceLifecycle(world(namespace("old", "Terminating")))
    error = refused(plugin, create(pod(namespace="old")))
    assert str(error) == (
        'pods "p" is forbidden: unable to create new content in namespace old because it is being terminated'
    )
    assert error.status.details is not None
    (cause,) = error.status.details.causes
    assert (cause.reason, cause.field) == ("NamespaceTerminating", "metadata.namespace")
    assert cause.message == "namespace old is being terminated"
    assert refused(plugin, send(pod(namespace="old"), "binding", Binding())).code == 403


def test_a_namespace_that_is_being_emptied_can_still_be_changed_and_deleted_from() -> None:
    plugin = NamespaceLifecycle(world(namespace("old", "Terminating")))
    admitted(plugin, update(pod(namespace="old"), pod(namespace="old")))
    admitted(plugin, delete(pod(namespace="old")))


def test_objects_outside_namespaces_and_reviews_are_not_looked_at() -> None:
    plugin = NamespaceLifecycle(world())
    admitted(plugin, create(Node(metadata=meta("n"))))
    admitted(plugin, create(namespace("fresh")))
    admitted(plugin, create(LocalSubjectAccessReview(metadata=meta("", "nowhere"))))
    admitted(plugin, create(ConfigMap(metadata=meta("c", "default"))))


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_the_namespaces_of_the_system_cannot_be_deleted(name: str) -> None:
    plugin = NamespaceLifecycle(world())
    assert forbidden(plugin, delete(namespace(name))) == "this namespace may not be deleted"
    admitted(plugin, delete(namespace("mine")))
