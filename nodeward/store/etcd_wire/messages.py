"""The messages of etcd's v3 protocol that the store uses, and no others (called by `members.py` and the store).

The table was written down from the published protocol; `base/protobuf.py` says how it is read and makes the classes.
"""

from __future__ import annotations

from typing import Any, Final

from nodeward.base.protobuf import message_classes

_MESSAGES: Final[dict[str, tuple[str, ...]]] = {
    "KeyValue": ("key=1 bytes", "create_revision=2 int64", "mod_revision=3 int64", "value=5 bytes"),
    "Event": ("type=1 int32", "kv=2 KeyValue"),
    "ResponseHeader": ("cluster_id=1 uint64", "member_id=2 uint64", "revision=3 int64", "raft_term=4 uint64"),
    "RangeRequest": (
        "key=1 bytes",
        "range_end=2 bytes",
        "limit=3 int64",
        "revision=4 int64",
        "keys_only=8 bool",
        "count_only=9 bool",
    ),
    "RangeResponse": ("header=1 ResponseHeader", "kvs=2 *KeyValue", "more=3 bool", "count=4 int64"),
    "PutRequest": ("key=1 bytes", "value=2 bytes"),
    "PutResponse": ("header=1 ResponseHeader",),
    "DeleteRangeRequest": ("key=1 bytes", "range_end=2 bytes", "prev_kv=3 bool"),
    "DeleteRangeResponse": ("header=1 ResponseHeader", "deleted=2 int64", "prev_kvs=3 *KeyValue"),
    "RequestOp": (
        "request_range=1 |RangeRequest",
        "request_put=2 |PutRequest",
        "request_delete_range=3 |DeleteRangeRequest",
    ),
    "ResponseOp": (
        "response_range=1 |RangeResponse",
        "response_put=2 |PutResponse",
        "response_delete_range=3 |DeleteRangeResponse",
    ),
    "Compare": ("result=1 int32", "target=2 int32", "key=3 bytes", "mod_revision=6 |int64"),
    "TxnRequest": ("compare=1 *Compare", "success=2 *RequestOp", "failure=3 *RequestOp"),
    "TxnResponse": ("header=1 ResponseHeader", "succeeded=2 bool", "responses=3 *ResponseOp"),
    "CompactionRequest": ("revision=1 int64", "physical=2 bool"),
    "CompactionResponse": ("header=1 ResponseHeader",),
    "WatchCreateRequest": ("key=1 bytes", "range_end=2 bytes", "start_revision=3 int64"),
    "WatchProgressRequest": (),
    "WatchRequest": ("create_request=1 |WatchCreateRequest", "progress_request=3 |WatchProgressRequest"),
    "WatchResponse": (
        "header=1 ResponseHeader",
        "watch_id=2 int64",
        "created=3 bool",
        "canceled=4 bool",
        "compact_revision=5 int64",
        "cancel_reason=6 string",
        "events=11 *Event",
    ),
    "StatusRequest": (),
    "StatusResponse": ("header=1 ResponseHeader", "version=2 string", "db_size=3 int64", "leader=4 uint64"),
}

#: `Compare`: the mod revision is equal
EQUAL: Final = 0
MOD_REVISION: Final = 2
#: `Event.type`
DELETE: Final = 1

_CLASSES: Final = message_classes("nodeward.etcd", _MESSAGES)

# The classes have no static types (they are made from the table), hence Any.
Compare: Any = _CLASSES["Compare"]
CompactionRequest: Any = _CLASSES["CompactionRequest"]
CompactionResponse: Any = _CLASSES["CompactionResponse"]
DeleteRangeRequest: Any = _CLASSES["DeleteRangeRequest"]
PutRequest: Any = _CLASSES["PutRequest"]
RangeRequest: Any = _CLASSES["RangeRequest"]
RangeResponse: Any = _CLASSES["RangeResponse"]
RequestOp: Any = _CLASSES["RequestOp"]
StatusRequest: Any = _CLASSES["StatusRequest"]
StatusResponse: Any = _CLASSES["StatusResponse"]
TxnRequest: Any = _CLASSES["TxnRequest"]
TxnResponse: Any = _CLASSES["TxnResponse"]
WatchCreateRequest: Any = _CLASSES["WatchCreateRequest"]
WatchProgressRequest: Any = _CLASSES["WatchProgressRequest"]
WatchRequest: Any = _CLASSES["WatchRequest"]
WatchResponse: Any = _CLASSES["WatchResponse"]
