"""The registry of admission plugins, in the order they run, and the chain of those that are enabled.

A new plugin is a file and a line here. The order is upstream's: namespaces first, quotas last, because what a quota
counts must not be refused or changed by a later plugin.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Final

from nodeward.apiserver.admission.chain import AdmissionChain
from nodeward.apiserver.admission.default_storage_class import DefaultStorageClass
from nodeward.apiserver.admission.default_toleration_seconds import DefaultTolerationSeconds
from nodeward.apiserver.admission.extended_resource_toleration import ExtendedResourceToleration
from nodeward.apiserver.admission.limit_ranger import LimitRanger
from nodeward.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from nodeward.apiserver.admission.node_declared_feature_validator import NodeDeclaredFeatureValidator
from nodeward.apiserver.admission.node_readiness_rule import NodeReadinessRuleConflicts
from nodeward.apiserver.admission.node_restriction import NodeRestriction
from nodeward.apiserver.admission.persistent_volume_claim_resize import PersistentVolumeClaimResize
from nodeward.apiserver.admission.plugin import AdmissionPlugin
from nodeward.apiserver.admission.pod_resize_validator import PodResizeValidator
from nodeward.apiserver.admission.pod_security import PodSecurity
from nodeward.apiserver.admission.priority import Priority
from nodeward.apiserver.admission.resource_quota import ResourceQuotaPlugin
from nodeward.apiserver.admission.runtime_class import RuntimeClassPlugin
from nodeward.apiserver.admission.service_account import ServiceAccountPlugin
from nodeward.apiserver.admission.storage_object_in_use_protection import StorageObjectInUseProtection
from nodeward.apiserver.admission.taint_nodes_by_condition import TaintNodesByCondition
from nodeward.apiserver.environment import Environment
from nodeward.base.errors import ConfigError
from nodeward.base.fielderror import quote

PLUGINS: Final[tuple[type[AdmissionPlugin], ...]] = (
    NamespaceLifecycle,
    LimitRanger,
    ServiceAccountPlugin,
    NodeRestriction,
    TaintNodesByCondition,
    PodSecurity,
    Priority,
    DefaultTolerationSeconds,
    ExtendedResourceToleration,
    DefaultStorageClass,
    StorageObjectInUseProtection,
    PersistentVolumeClaimResize,
    RuntimeClassPlugin,
    NodeDeclaredFeatureValidator,
    PodResizeValidator,
    NodeReadinessRuleConflicts,
    ResourceQuotaPlugin,
)

#: Off unless enabled, as upstream.
OFF: Final = ("NodeRestriction", "ExtendedResourceToleration")


def build(env: Environment, enable: Sequence[str] = (), disable: Sequence[str] = ()) -> AdmissionChain:
    """Make the chain of the plugins that are `chosen`."""
    return AdmissionChain([plugin(env) for plugin in chosen(enable, disable)])


def chosen(enable: Sequence[str] = (), disable: Sequence[str] = ()) -> list[type[AdmissionPlugin]]:
    """Return the plugins that are on by default or named in `enable`, without those in `disable`."""
    known = [plugin.name for plugin in PLUGINS]
    faults = [
        f"{flag} plugin {quote(name)} is unknown{_nearest(name, known)}"
        for flag, names in (("enable-admission-plugins", enable), ("disable-admission-plugins", disable))
        for name in names
        if name not in known
    ]
    both = sorted({*enable} & {*disable})
    if both:
        listed = " ".join(both)
        faults.append(f"[{listed}] in enable-admission-plugins and disable-admission-plugins overlapped")
    if faults:
        raise ConfigError(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")
    return [
        plugin
        for plugin in PLUGINS
        if plugin.name not in disable and (plugin.name in enable or plugin.name not in OFF)
    ]


def _nearest(name: str, known: Sequence[str]) -> str:
    by_lower = {each.lower(): each for each in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f" (did you mean {quote(by_lower[found[0]])}?)" if found else ""
