"""Short names for templates."""

from __future__ import annotations

import re

import msgspec

from nodeward.api.core_v1.pod import PodTemplateSpec
from nodeward.api.meta import ObjectMeta
from nodeward.controllers.pods.template_hash import template_hash
from tests.controllers.workloads import template


def test_the_same_template_has_the_same_name_in_every_process() -> None:
    # A change of this text would give every deployment of an upgraded cluster new names for new templates.
    assert template_hash(template()) == template_hash(template()) == "5f57ff9555"


def test_the_order_of_labels_does_not_matter() -> None:
    one = PodTemplateSpec(metadata=ObjectMeta(labels={"a": "1", "b": "2"}))
    other = PodTemplateSpec(metadata=ObjectMeta(labels={"b": "2", "a": "1"}))
    assert template_hash(one) == template_hash(other)


def test_another_template_has_another_name_and_so_has_a_collision() -> None:
    names = [template_hash(template()), template_hash(template("web:2"))]
    names += [template_hash(template(), count) for count in range(3)]
    assert len({*names}) == 5


def test_names_are_made_of_letters_that_cannot_be_mistaken() -> None:
    for number in range(200):
        changed = msgspec.structs.replace(template(), metadata=ObjectMeta(labels={"n": str(number)}))
        assert re.fullmatch("[bcdfghjklmnpqrstvwxz2456789]{1,10}", template_hash(changed))
