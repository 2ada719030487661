"""Names of images: well formed, and within reach."""

from __future__ import annotations

import pytest

from nodeward.kubelet.runtime.images import is_reachable, is_well_formed, why_missing


@pytest.mark.parametrize(
    "image",
    [
        "busybox",
        "busybox:1.36",
        "library/busybox",
        "registry.example.com:5000/team/app:v1.2.3-rc.1_x",
        "localhost/app",
        "Registry.Example.com/app",
        "[::1]:5000/app",
        "a__b/c-d.e",
        "app@sha256:" + "0" * 64,
        "app:1@sha256:" + "a" * 64,
    ],
)
def test_names_in_use_are_well_formed(image: str) -> None:
    assert is_well_formed(image)
    assert why_missing(image, "Always") is None


@pytest.mark.parametrize(
    "image", ["", "App", "a b", "app:", "app:-x", "/app", "app/", "a//b", "app@sha256:12", "a" * 256, "app\n"]
)
def test_names_nobody_could_pull_are_not(image: str) -> None:
    missing = why_missing(image, "Always")
    assert missing is not None
    assert missing[0] == "InvalidImageName"


def test_the_reserved_domain_is_out_of_reach_and_its_look_alikes_are_not() -> None:
    assert not is_reachable("registry.invalid/app")
    assert not is_reachable("registry.invalid:5000/team/app")
    for image in (
        "invalid/app",
        "example.com/registry.invalid/app",
        "registry.invalid.example.com/app",
        "x.invalid",
    ):
        assert is_reachable(image)
