"""Which plugins run, and in which order."""

from __future__ import annotations

import pytest

from nodeward.apiserver.admission.plugins import PLUGINS, build
from nodeward.base.errors import ConfigError
from tests.apiserver.admission.world import account, create, pod, world


def test_the_usual_plugins_run_in_order() -> None:
    assert build(world()).names == (
        "NamespaceLifecycle",
        "LimitRanger",
        "ServiceAccount",
        "TaintNodesByCondition",
        "PodSecurity",
        "Priority",
        "DefaultTolerationSeconds",
        "DefaultStorageClass",
        "StorageObjectInUseProtection",
        "PersistentVolumeClaimResize",
        "RuntimeClass",
        "NodeDeclaredFeatureValidator",
        "PodResizeValidator",
        "NodeReadinessRuleConflicts",
        "ResourceQuota",
    )


def test_plugins_can_be_switched_on_and_off() -> None:
    names = build(world(), ["NodeRestriction"], ["Priority"]).names
    assert "Priority" not in names
    assert names.index("NodeRestriction") == names.index("ServiceAccount") + 1


def test_names_are_unique() -> None:
    assert len({plugin.name for plugin in PLUGINS}) == len(PLUGINS)


@pytest.mark.parametrize(
    ("enable", "disable", "why"),
    [
        (
            ["noderestrictions"],
            [],
            'enable-admission-plugins plugin "noderestrictions" is unknown (did you mean "NodeRestriction"?)',
        ),
        ([], ["Xyzzy"], 'disable-admission-plugins plugin "Xyzzy" is unknown'),
        (
            ["Priority"],
            ["Priority"],
            "[Priority] in enable-admission-plugins and disable-admission-plugins overlapped",
        ),
    ],
)
def test_wrong_names_are_refused(enable: list[str], disable: list[str], why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build(world(), enable, disable)
    assert str(caught.value) == why


def test_a_plain_pod_passes_the_whole_chain() -> None:
    chain = build(world(account()), [plugin.name for plugin in PLUGINS])
    write = create(pod())
    chain.admit(write)
    chain.validate(write)
    spec = write.new.spec
    assert (spec.service_account_name, spec.priority, len(spec.tolerations)) == ("default", 0, 2)
