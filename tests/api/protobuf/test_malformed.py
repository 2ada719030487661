"""Whatever the bytes are: a tree, or one clear exception."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.codec import parse_tree
from nodeward.api.protobuf.reading import protobuf_to_json
from nodeward.api.protobuf.wire import ProtobufError
from tests.api.protobuf.go_messages import body, delimited, envelope, tag, varint


def _pod(spec: bytes) -> bytes:
    return envelope("v1", "Pod", delimited(2, spec))


def _container(content: bytes) -> bytes:
    return _pod(delimited(2, content))


def _strategy(amount: bytes) -> bytes:
    rolling = delimited(2, delimited(1, amount))
    return envelope("apps/v1", "Deployment", delimited(2, delimited(4, rolling)))


def _revision(raw: bytes) -> bytes:
    return envelope("apps/v1", "ControllerRevision", delimited(2, delimited(1, raw)))


_BODIES = {
    "nothing": (b"", "does not appear to be a protobuf message"),
    "JSON": (b'{"kind":"Pod"}', "does not appear to be a protobuf message"),
    "no envelope": (b"k8s\x00", 'no kind "" is registered for version ""'),
    "unknown kind": (envelope("v1", "Nope", b""), 'no kind "Nope" is registered for version "v1"'),
    "unknown version": (
        envelope("apps/v1beta1", "Deployment", b""),
        'no kind "Deployment" is registered for version "apps/v1beta1"',
    ),
    "compressed": (envelope("v1", "Pod", b"", contentEncoding="gzip"), 'encoded as "gzip"'),
    "JSON in an envelope": (envelope("v1", "Pod", b"{}", contentType="application/json"), "application/json"),
    "a kind that is a number": (b"k8s\x00" + delimited(1, tag(2, 0) + b"\x01"), "has wire type 0, not 2"),
    "a length past the end": (
        _pod(tag(2, 2) + varint(2**60)),
        "field 2 should have 1152921504606846976 bytes, but only 0 are left",
    ),
    "a number that does not end": (_pod(tag(25, 0) + b"\x80"), "ends in the middle of a number"),
    "a number that is not there": (_pod(tag(25, 0)), "ends in the middle of a number"),
    "a number of eleven bytes": (_pod(tag(25, 0) + b"\x80" * 10 + b"\x01"), "more than 64 bits"),
    "half a fixed number": (_pod(tag(1000, 1) + bytes(7)), "ends in the middle of a number"),
    "field 0": (_pod(b"\x00\x00"), "0 is not a field number"),
    "a number as long as a message": (_pod(varint(2**40)), "is not a field number"),
    "wire type 7": (_pod(b"\x0f"), "field 1 has wire type 7, which does not exist"),
    "a string that is a number": (
        _container(tag(1, 0) + b"\x01"),
        "core_v1.Container.name has wire type 0, not 2",
    ),
    "a number that is a string": (
        _pod(delimited(25, b"1")),
        "core_v1.PodSpec.priority has wire type 2, not 0",
    ),
    "a list that is a number": (
        _pod(tag(2, 0) + b"\x01"),
        "core_v1.PodSpec.containers has wire type 0, not 2",
    ),
    "a known field that is a group": (_pod(tag(2, 3) + tag(2, 4)), "containers has wire type 3, not 2"),
    "a map key that is a number": (
        _pod(delimited(7, tag(1, 0) + b"\x01")),
        "map entry has wire type 0, not 2",
    ),
    "a map value that is a number": (
        _pod(delimited(7, tag(2, 0) + b"\x01")),
        "map entry has wire type 0, not 2",
    ),
    "a packed number that does not end": (_pod(delimited(14, delimited(4, b"\x80"))), "middle of a number"),
    "a name that is not UTF-8": (_container(delimited(1, b"\xff")), "a string is not UTF-8"),
    "half a surrogate pair": (_container(delimited(1, b"\xed\xa0\x80")), "a string is not UTF-8"),
    "a group that does not end": (_pod(tag(1000, 3)), "the group 1000 does not end"),
    "a group that did not start": (_pod(tag(1000, 4)), "the group 1000 ends without having started"),
    "groups that cross": (_pod(tag(1000, 3) + tag(1001, 3) + tag(1000, 4)), "ends without having started"),
    "half a string in a group": (_pod(tag(1000, 3) + tag(1, 2) + b"\x05"), "ends in the middle"),
    "groups upon groups": (_pod(tag(1000, 3) * 100_000), "groups are nested more than 100 deep"),
    "a time after the year 9999": (
        envelope("v1", "Pod", delimited(3, delimited(7, tag(1, 0) + varint(2**62)))),
        "a time cannot be written",
    ),
    "a list in a map that holds numbers": (
        envelope(
            "authorization.k8s.io/v1",
            "SubjectAccessReview",
            delimited(2, delimited(5, delimited(2, tag(1, 0) + b"\x01"))),
        ),
        "field 1 of a list has wire type 0, not 2",
    ),
    "neither number nor string": (_strategy(tag(1, 0) + b"\x02"), "is of type 2, which does not exist"),
    "JSON that is not": (_revision(b"{"), "JSON inside the object cannot be read"),
    "JSON that is not UTF-8": (_revision(b'"\xff"'), "a string is not UTF-8"),
    "JSON that is too deep": (_revision(b"[" * 100_000), "JSON inside the object cannot be read"),
}


@pytest.mark.parametrize(("sent", "why"), _BODIES.values(), ids=_BODIES.keys())
def test_what_cannot_be_read_is_refused_with_the_reason(sent: bytes, why: str) -> None:
    with pytest.raises(ProtobufError) as caught:
        protobuf_to_json(sent)
    assert why in str(caught.value)


_POD = body(
    "v1",
    "Pod",
    {
        "metadata": {
            "name": "a",
            "labels": {"a": "b"},
            "creationTimestamp": {"seconds": 1},
            "managedFields": [{"fieldsV1": {"raw": "e30="}}],
        },
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "resources": {"limits": {"cpu": {"string": "1"}}},
                    "readinessProbe": {"handler": {"httpGet": {"port": {"type": 1, "strVal": "x"}}}},
                }
            ],
            "securityContext": {"supplementalGroups": [1, 2, 3]},
            "volumes": [{"name": "v", "volumeSource": {"emptyDir": {}}}],
        },
    },
)


def _read_or_refuse(sent: bytes) -> None:
    with contextlib.suppress(ProtobufError):
        assert isinstance(parse_tree(protobuf_to_json(sent)), dict)


@given(st.binary(max_size=200), st.sampled_from(["Pod", "Event", "Secret", "ResourceQuota", "DeleteOptions"]))
def test_noise_is_read_or_refused(noise: bytes, kind: str) -> None:
    _read_or_refuse(envelope("v1", kind, noise))
    _read_or_refuse(b"k8s\x00" + noise)


@given(st.data())
def test_a_damaged_body_is_read_or_refused(data: st.DataObject) -> None:
    damaged = bytearray(_POD)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    _read_or_refuse(bytes(damaged))


def test_a_body_that_was_cut_off_is_refused_wherever_the_cut_is() -> None:
    """Except exactly before the object, which leaves an object without fields."""
    before_object = len(envelope("v1", "Pod", b"")) - len(delimited(2, b""))
    for size in range(len(_POD)):
        if size != before_object:
            with pytest.raises(ProtobufError):
                protobuf_to_json(_POD[:size])
    assert parse_tree(protobuf_to_json(_POD[:before_object])) == {"apiVersion": "v1", "kind": "Pod"}
