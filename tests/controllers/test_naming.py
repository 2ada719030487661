"""`--controllers`: the names kube-controller-manager's users know, long and short."""

from __future__ import annotations

import pytest

from nodeward.base.errors import ConfigError
from nodeward.controllers import CONTROLLERS
from nodeward.controllers.naming import chosen, name_of


def names(*wanted: str) -> list[str]:
    return [name_of(entry) for entry in chosen(CONTROLLERS, wanted)]


def test_a_star_is_all_of_them() -> None:
    assert chosen(CONTROLLERS, ("*",)) == CONTROLLERS
    assert all(name.endswith("-controller") for name in names("*"))


def test_named_ones_alone_are_run_in_the_order_of_the_registry() -> None:
    assert names("deployment-controller", "replicaset") == ["replicaset-controller", "deployment-controller"]
    assert names("podgc", "garbagecollector", "nodelifecycle") == [
        "garbage-collector-controller",
        "pod-garbage-collector-controller",
        "node-lifecycle-controller",
    ]


def test_one_can_be_left_out_of_all() -> None:
    assert "deployment-controller" not in names("*", "-deployment")
    assert len(names("*", "-deployment")) == len(CONTROLLERS) - 1
    # Naming one goes before leaving it out, as upstream decides.
    assert "deployment-controller" in names("deployment-controller", "-deployment-controller")
    assert names("-deployment-controller") == []


def test_a_name_nobody_knows_is_told_with_the_nearest() -> None:
    with pytest.raises(
        ConfigError, match="'deploymnet-controller' is not in the list of known controllers; did you mean"
    ):
        chosen(CONTROLLERS, ("*", "deploymnet-controller"))
    with pytest.raises(ConfigError, match="'daemonset-controller'"):
        chosen(CONTROLLERS, ("-deamonset-controller",))
