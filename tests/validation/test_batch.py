"""Jobs and cron jobs: what is refused, in which words, and how schedules are read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.batch_v1 import CronJob, Job
from nodeward.rules.cron_grammar import schedule_fault, time_zone_fault
from nodeward.validation.batch.indexes import IndexesFault, count_indexes, overlap
from tests.validation.tables import DROP, Case, case, check_create, check_status, check_update, edited

_POD = {"containers": [{"name": "c", "image": "busybox"}], "restartPolicy": "Never"}
_LABELS = {
    "controller-uid": "u-1",
    "job-name": "pi",
    "batch.kubernetes.io/controller-uid": "u-1",
    "batch.kubernetes.io/job-name": "pi",
}
JOB: dict[str, Any] = {
    "metadata": {"name": "pi", "namespace": "default", "uid": "u-1"},
    "spec": {
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u-1"}},
        "template": {"metadata": {"labels": _LABELS}, "spec": _POD},
    },
}
INDEXED = edited(JOB, {"spec.completionMode": "Indexed", "spec.completions": 3})
CRON: dict[str, Any] = {
    "metadata": {"name": "nightly", "namespace": "default"},
    "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": {"spec": _POD}}}},
}
_NOT_NEGATIVE = "must be greater than or equal to 0"


@pytest.mark.parametrize(
    "one",
    [
        case("a plain job is fine"),
        case(
            "the generated labels must be there and right",
            {
                "spec.template.metadata.labels": {**_LABELS, "job-name": "x"},
                "spec.selector": {"matchLabels": {"job-name": "x"}},
            },
            'spec.template.metadata.labels[job-name]: Invalid value: {"controller-uid":"u-1","job-name":"x",...',
            'spec.selector: Invalid value: {"matchLabels":{"job-name":"x"}}: `selector` not auto-generated',
        ),
        case(
            "a selector made by hand is the user's business",
            {
                "spec.manualSelector": True,
                "spec.selector": {"matchLabels": {"a": "b"}},
                "spec.template.metadata.labels": {"a": "b"},
            },
        ),
        case(
            "a selector is required, and without one no pod is chosen",
            {"spec.selector": DROP},
            "spec.selector: Required value",
            "spec.template.metadata.labels: Invalid value: {...",
        ),
        case(
            "pods of a job end",
            {"spec.template.spec.restartPolicy": "Always"},
            'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
        ),
        case(
            "counts are not negative",
            {"spec.parallelism": -1, "spec.backoffLimit": -2},
            f"spec.parallelism: Invalid value: -1: {_NOT_NEGATIVE}",
            f"spec.backoffLimit: Invalid value: -2: {_NOT_NEGATIVE}",
        ),
        case(
            "limits per index need indexes",
            {"spec.backoffLimitPerIndex": 1, "spec.maxFailedIndexes": 2},
            "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode",
            "spec.maxFailedIndexes: Invalid value: 2: requires indexed completion mode",
        ),
        case(
            "a limit of failed indexes needs one per index",
            {"spec.completionMode": "Indexed", "spec.completions": 3, "spec.maxFailedIndexes": 4},
            "spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified",
            "spec.maxFailedIndexes: Invalid value: 4: must be less than or equal to completions",
        ),
        case(
            "an indexed job says how many",
            {"spec.completionMode": "Indexed", "spec.parallelism": 100001},
            "spec.completions: Required value: when completion mode is Indexed",
            "spec.parallelism: Invalid value: 100001: "
            "must be less than or equal to 100000 when completion mode is Indexed",
        ),
        case(
            "a huge indexed job is limited further",
            {
                "spec.completionMode": "Indexed",
                "spec.completions": 100001,
                "spec.parallelism": 10001,
                "spec.backoffLimitPerIndex": 1,
            },
            "spec.maxFailedIndexes: Required value: must be specified when completions is above 100000",
            "spec.parallelism: Invalid value: 10001: must be less than or equal to 10000 when completions are "
            "above 100000 and used with backoff limit per index",
        ),
        case(
            "other managers are named by a domain",
            {"spec.managedBy": "me"},
            'spec.managedBy: Invalid value: "me": must be a domain-prefixed path (such as "acme.io/foo")',
        ),
        case("another manager is fine", {"spec.managedBy": "example.com/manager"}),
        case(
            "an unknown mode",
            {"spec.completionMode": "X"},
            'spec.completionMode: Unsupported value: "X": supported values: "NonIndexed", "Indexed"',
        ),
        case(
            "gangs need their gate",
            {"spec.scheduling": {"schedulingPolicy": {"basic": {}}}},
            "spec.scheduling: Forbidden",
        ),
        case(
            "a gang is not larger than what runs at once",
            {"spec.scheduling": {"schedulingPolicy": {"gang": {"minCount": 2}}}},
            "spec.scheduling.schedulingPolicy.gang.minCount: Invalid value: 2: "
            "must not be greater than parallelism (1)",
            gates=("WorkloadWithJob",),
        ),
        case(
            "a policy is one policy",
            {"spec.scheduling": {"schedulingPolicy": {"gang": {}, "basic": {}}, "disruptionMode": {}}},
            'spec.scheduling.schedulingPolicy: Invalid value: "{basic, gang}": '
            "must specify exactly one of: `basic`, `gang`",
            'spec.scheduling.disruptionMode: Invalid value: "": must specify one of: `single`, `all`',
            gates=("WorkloadWithJob",),
        ),
    ],
    ids=str,
)
def test_a_new_job(one: Case) -> None:
    check_create(Job, JOB, one)


_RULES = "spec.podFailurePolicy.rules"


@pytest.mark.parametrize(
    "one",
    [
        case(
            "a failure policy is fine",
            {_RULES: [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
        ),
        case(
            "a rule says what and when",
            {_RULES: [{}]},
            f'{_RULES}[0].action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]',
            f"{_RULES}[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
        ),
        case(
            "exit codes are known containers' and ordered",
            {
                _RULES: [
                    {
                        "action": "FailJob",
                        "onExitCodes": {"operator": "In", "values": [3, 0, 3], "containerName": "x"},
                    }
                ]
            },
            f'{_RULES}[0].onExitCodes.containerName: Invalid value: "x": '
            "must be one of the container or initContainer names in the pod template",
            f"{_RULES}[0].onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator",
            f"{_RULES}[0].onExitCodes.values[2]: Duplicate value: 3",
            f"{_RULES}[0].onExitCodes.values: Invalid value: [3,0,3]: must be ordered",
        ),
        case(
            "failing an index needs a limit per index",
            {_RULES: [{"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [0]}}]},
            f'{_RULES}[0].action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set',
        ),
        case(
            "only failed pods are replaced",
            {_RULES: [], "spec.podReplacementPolicy": "TerminatingOrFailed"},
            'spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed"',
        ),
        case(
            "a success policy needs indexes",
            {"spec.successPolicy": {"rules": [{"succeededCount": 1}]}},
            'spec.successPolicy: Invalid value: {"rules":[{"succeededCount":1}]}: requires indexed completion mode',
        ),
        case(
            "a success policy names indexes that are there",
            {
                "spec.completionMode": "Indexed",
                "spec.completions": 3,
                "spec.successPolicy": {"rules": [{"succeededIndexes": "0-5", "succeededCount": 4}, {}]},
            },
            'spec.successPolicy.rules[0].succeededIndexes: Invalid value: "0-5": '
            'error parsing succeededIndexes: too large index: "5"',
            "spec.successPolicy.rules[0].succeededCount: Invalid value: 4: "
            "must be less than or equal to 3 (the number of specified completions)",
            "spec.successPolicy.rules[0].succeededCount: Invalid value: 4: "
            "must be less than or equal to 0 (the number of indexes in the specified succeededIndexes field)",
            "spec.successPolicy.rules[1]: Required value: "
            "at least one of succeededCount or succeededIndexes must be specified",
        ),
    ],
    ids=str,
)
def test_the_policies_of_a_job(one: Case) -> None:
    check_create(Job, JOB, one)


def test_the_pods_of_an_indexed_job_must_have_names() -> None:
    name = "a" * 62
    labels = {key: name if "name" in key else "u-1" for key in _LABELS}
    change = {"metadata.name": name, "spec.template.metadata.labels": labels}
    error = f'metadata.name: Invalid value: "{name}": will not able to create pod with invalid DNS label: {name}-2'
    check_create(Job, INDEXED, case("too long", change, error))


@pytest.mark.parametrize(
    "one",
    [
        case(
            "parallelism may change",
            {"spec.parallelism": 3},
            before={"spec.parallelism": 1, "spec.completions": 1},
        ),
        case(
            "completions do not change",
            {"spec.completions": 3},
            "spec.completions: Invalid value: 3: field is immutable",
        ),
        case(
            "the template does not change",
            {"spec.template.spec.containers[0].image": "x"},
            "spec.template: Invalid value: {...",
        ),
        case(
            "pods of a job at rest can be sent elsewhere",
            {
                "spec.template.spec.nodeSelector": {"a": "b"},
                "spec.template.spec.tolerations": [{"operator": "Exists"}],
            },
            before={"spec.suspend": True},
        ),
        case(
            "pods of a job at rest can be resized",
            {"spec.template.spec.containers[0].resources": {"requests": {"cpu": "1"}}},
            before={"spec.suspend": True},
        ),
        case(
            "but not otherwise changed",
            {"spec.template.spec.containers[0].image": "x"},
            "spec.template.spec: Invalid value: {...",
            before={"spec.suspend": True},
        ),
        case(
            "a job whose pods still run is not at rest",
            {"spec.template.spec.nodeSelector": {"a": "b"}},
            "spec.template: Invalid value: {...",
            before={"spec.suspend": True, "status": {"active": 1}},
        ),
        case(
            "policies do not change",
            {"spec.managedBy": "example.com/x", "spec.completionMode": "Indexed"},
            'spec.completionMode: Invalid value: "Indexed": field is immutable',
            'spec.managedBy: Invalid value: "example.com/x": field is immutable',
        ),
    ],
    ids=str,
)
def test_a_changed_job(one: Case) -> None:
    check_update(Job, JOB, one)


def test_an_indexed_job_is_scaled_as_a_whole() -> None:
    check_update(Job, INDEXED, case("together", {"spec.completions": 5, "spec.parallelism": 5}))
    error = "spec.completions: Invalid value: 5: can only be modified in tandem with spec.parallelism"
    check_update(Job, INDEXED, case("alone", {"spec.completions": 5}, error))


def _conditions(*names: str) -> list[dict[str, str]]:
    return [{"type": name, "status": "True"} for name in names]


_DONE = {
    "conditions": _conditions("SuccessCriteriaMet", "Complete"),
    "startTime": "2026-01-01T00:00:00Z",
    "completionTime": "2026-01-01T00:01:00Z",
    "succeeded": 1,
}


@pytest.mark.parametrize(
    "one",
    [
        case("a finished job is fine", {"status": _DONE}),
        case(
            "completion has a time and a reason",
            {"status": {"conditions": _conditions("Complete")}},
            "status.completionTime: Required value: completionTime is required for Complete jobs",
            "status.conditions: Invalid value: "
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
            "status.startTime: Required value: startTime is required for finished job",
        ),
        case(
            "a job does not fail and succeed",
            {
                "status": {
                    **_DONE,
                    "conditions": _conditions("SuccessCriteriaMet", "Complete", "Failed", "FailureTarget"),
                }
            },
            "status.conditions: Invalid value: cannot set Complete=True and Failed=true conditions",
            "status.conditions: Invalid value: cannot set Complete=True and FailureTarget=true conditions",
            "status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and Failed=true conditions",
            "status.conditions: Invalid value: cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        ),
        case(
            "a finished job stays finished, and its counts do not run back",
            {"status": {"startTime": "2026-01-01T00:00:00Z"}},
            "status.conditions: Invalid value: cannot disable the terminal Complete=True condition",
            "status.succeeded: Invalid value: 0: cannot decrease the succeeded counter",
            "status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition",
            before={"status": _DONE},
        ),
        case(
            "nothing runs in a finished job",
            {
                "status": {
                    **_DONE,
                    "active": 1,
                    "terminating": 1,
                    "uncountedTerminatedPods": {"failed": ["a", "a", ""]},
                }
            },
            'status.uncountedTerminatedPods.failed[1]: Duplicate value: "a"',
            'status.uncountedTerminatedPods.failed[2]: Invalid value: "": must not be empty',
            "status.active: Invalid value: 1: active>0 is invalid for finished job",
            "status.uncountedTerminatedPods: Invalid value: "
            '{"failed":["a","a",""]}: must be empty for finished job',
            "status.terminating: Invalid value: 1: terminating>0 is invalid for finished job",
        ),
        case(
            "indexes belong to indexed jobs, time runs forward",
            {
                "status": {
                    **_DONE,
                    "completedIndexes": "0",
                    "failedIndexes": "0",
                    "completionTime": "2025-01-01T00:00:00Z",
                    "ready": 1,
                }
            },
            'status.completionTime: Invalid value: "2025-01-01T00:00:00Z": must be equal to or after `startTime`',
            'status.completedIndexes: Invalid value: "0": '
            "cannot set non-empty completedIndexes when non-indexed completion mode",
            'status.failedIndexes: Invalid value: "0": '
            "cannot set non-null failedIndexes when backoffLimitPerIndex is null",
            'status.failedIndexes: Invalid value: "0": failedIndexes and completedIndexes overlap at index: 0',
            "status.ready: Invalid value: 1: cannot set more ready pods than active",
        ),
        case(
            "a running job's start does not move",
            {"status": {"startTime": "2026-01-02T00:00:00Z"}},
            'status.startTime: Invalid value: "2026-01-02T00:00:00Z": '
            "field is immutable for unsuspended job once set",
            before={"status": {"startTime": "2026-01-01T00:00:00Z"}},
        ),
    ],
    ids=str,
)
def test_the_status_of_a_job(one: Case) -> None:
    check_status(Job, JOB, one)


@pytest.mark.parametrize(
    "one",
    [
        case("a plain cron job is fine"),
        case("a schedule is required", {"spec.schedule": ""}, "spec.schedule: Required value"),
        case(
            "a schedule is a schedule",
            {"spec.schedule": "* * *"},
            'spec.schedule: Invalid value: "* * *": expected exactly 5 fields, found 3: [* * *]',
        ),
        case(
            "the time zone has its own field",
            {"spec.schedule": "TZ=UTC 0 * * * *"},
            'spec.schedule: Invalid value: "TZ=UTC 0 * * * *": '
            "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
        ),
        case(
            "time zones are known ones",
            {"spec.timeZone": "Mars/Olympus"},
            'spec.timeZone: Invalid value: "Mars/Olympus": unknown time zone Mars/Olympus',
        ),
        case(
            "policies are known ones",
            {"spec.concurrencyPolicy": "x"},
            'spec.concurrencyPolicy: Unsupported value: "x": supported values: "Allow", "Forbid", "Replace"',
        ),
        case(
            "the selector is the server's",
            {
                "spec.jobTemplate.spec.selector": {"matchLabels": {"a": "b"}},
                "spec.jobTemplate.spec.manualSelector": True,
            },
            'spec.jobTemplate.spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: '
            "`selector` will be auto-generated",
            'spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"',
        ),
        case(
            "jobs are called after it, so there must be room",
            {"metadata.name": "a" * 53},
            f'metadata.name: Invalid value: "{"a" * 53}": must be no more than 52 characters',
        ),
        case(
            "faults of the pods are faults of the cron job",
            {"spec.jobTemplate.spec.template.spec.containers[0].image": DROP},
            "spec.jobTemplate.spec.template.spec.containers[0].image: Required value",
        ),
    ],
    ids=str,
)
def test_a_new_cron_job(one: Case) -> None:
    check_create(CronJob, CRON, one)


def test_an_old_cron_job_keeps_its_time_zone_in_the_schedule() -> None:
    old = {"spec.schedule": "TZ=UTC 0 * * * *"}
    check_update(CronJob, CRON, case("fine", {"spec.suspend": True}, before=old))
    error = (
        'spec.schedule: Invalid value: "TZ=UTC 0 * * * *": '
        "cannot use both timeZone field and TZ or CRON_TZ in schedule"
    )
    check_update(CronJob, CRON, case("not both", {"spec.timeZone": "UTC"}, error, before=old))


@pytest.mark.parametrize(
    ("schedule", "fault"),
    [
        ("*/5 0-4,8 1 JAN-mar sun", None),
        ("? * * * *", None),
        ("@hourly", None),
        ("@every 1h30m", None),
        ("CRON_TZ=Europe/Berlin 0 6 * * *", None),
        ("", "empty spec string"),
        ("@fortnightly", "unrecognized descriptor: @fortnightly"),
        ("@every soon", 'failed to parse duration @every soon: time: invalid duration "soon"'),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 5-3", "beginning of range (5) beyond end of range (3): 5-3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
        (
            "TZ=Nowhere/At_all * * * * *",
            "provided bad location Nowhere/At_all: unknown time zone Nowhere/At_all",
        ),
    ],
)
def test_a_schedule_is_read_as_cron_reads_it(schedule: str, fault: str | None) -> None:
    assert schedule_fault(schedule) == fault


@given(st.text(max_size=40))
def test_no_text_breaks_the_reader_of_schedules(text: str) -> None:
    assert isinstance(schedule_fault(text), str | None)


def test_time_zones_are_names_from_the_database() -> None:
    assert time_zone_fault("Europe/Berlin") is None
    assert time_zone_fault("") == "timeZone must be nil or non-empty string"
    assert time_zone_fault("../etc") == "unknown time zone ../etc"
    assert time_zone_fault("local") == (
        "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
    )


def _written(indexes: set[int]) -> str:
    parts: list[list[int]] = []
    for index in sorted(indexes):
        if parts and parts[-1][-1] == index - 1:
            parts[-1].append(index)
        else:
            parts.append([index])
    return ",".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)


_INDEXES = st.sets(st.integers(0, 30))


@given(_INDEXES, _INDEXES)
def test_sets_of_indexes_are_counted_and_compared_as_sets(one: set[int], other: set[int]) -> None:
    assert count_indexes(_written(one), 31) == len(one)
    assert overlap(_written(one), _written(other), 31) == min(one & other, default=None)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("3,1", "non-increasing order, previous: 3, current: 1"),
        ("2-2", "non-increasing order, previous: 2, current: 2"),
        ("9", 'too large index: "9"'),
        ("a", 'cannot convert string to integer for index: "a"'),
        (
            "1-2-3",
            'the fragment "1-2-3" violates the requirement that an index interval can have '
            "at most two parts separated by '-'",
        ),
    ],
)
def test_what_is_not_a_set_of_indexes_is_refused(text: str, fault: str) -> None:
    with pytest.raises(IndexesFault) as found:
        count_indexes(text, 5)
    assert str(found.value) == fault
