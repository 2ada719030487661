"""A scheduler's configuration file: what it means, and what is said about a bad one."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeward.base.errors import ConfigError
from nodeward.features.gates import Gates
from nodeward.scheduler.config import load_scheduler_config, read_scheduler_config
from nodeward.scheduler.config.profiles import points_of
from nodeward.scheduler.framework.plugin import EXTENSION_POINTS
from nodeward.scheduler.plugins import REGISTRY
from nodeward.scheduler.settings import (
    ProfileSettings,
    SchedulerSettings,
    default_profile,
)
from tests.scheduler.plugins import profile as shipped

GATES = shipped.GATES
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def read(text: str, gates: Gates = GATES) -> SchedulerSettings:
    return read_scheduler_config((HEAD + text).encode(), "sched.yaml", gates)


def one(text: str, gates: Gates = GATES) -> ProfileSettings:
    """The one profile whose `plugins` or `pluginConfig` are given."""
    lines = "".join(f"  {line}\n" for line in text.splitlines())
    (found,) = read(f"profiles:\n- schedulerName: default-scheduler\n{lines}", gates).profiles
    return found


def refused(text: str, gates: Gates = GATES) -> str:
    with pytest.raises(ConfigError) as caught:
        read(text, gates)
    return str(caught.value)


def weights(found: ProfileSettings) -> dict[str, int]:
    return {use.name: use.weight for use in found.plugins}


# -- what a file means


def test_a_file_that_says_nothing_is_the_default_scheduler() -> None:
    assert read("") == SchedulerSettings(profiles=(default_profile(GATES),))


def test_a_nameless_only_profile_is_that_of_the_default_scheduler() -> None:
    (found,) = read("profiles:\n- {}\n").profiles
    assert (found.name, found.plugins) == ("default-scheduler", default_profile(GATES).plugins)
    assert found.disabled_points == {}


def test_arguments_nobody_gave_are_those_of_kubernetes() -> None:
    found = one("").arguments
    assert found["NodeResourcesFit"]["scoringStrategy"] == {
        "type": "LeastAllocated",
        "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
    }


def test_scalars_are_taken_over() -> None:
    found = read(
        """
parallelism: 4
percentageOfNodesToScore: 40
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 20
enableProfiling: false
leaderElection:
  leaderElect: false
  leaseDuration: 1m
  renewDeadline: 40s
  retryPeriod: 500ms
  resourceName: mine
  resourceNamespace: apart
clientConnection: {kubeconfig: /etc/k, qps: 10.5, burst: 20, contentType: application/json}
"""
    )
    assert found == SchedulerSettings(
        profiles=(default_profile(GATES),),
        pod_initial_backoff_seconds=2,
        pod_max_backoff_seconds=20,
        leader_elect=False,
        lease_duration_seconds=60.0,
        renew_deadline_seconds=40.0,
        retry_period_seconds=0.5,
        resource_name="mine",
        resource_namespace="apart",
        parallelism=4,
        percentage_of_nodes_to_score=40,
        kubeconfig="/etc/k",
    )


def test_several_profiles_differ_in_their_plugins() -> None:
    first, second = read(
        """
profiles:
- schedulerName: default-scheduler
- schedulerName: no-scoring
  plugins:
    score: {disabled: [{name: '*'}]}
    preScore: {disabled: [{name: '*'}]}
"""
    ).profiles
    assert (first.name, second.name) == ("default-scheduler", "no-scoring")
    assert "NodeResourcesFit" in weights(second)
    assert all({"score", "preScore"} <= points for points in second.disabled_points.values())
    assert second.disabled_points["NodeResourcesFit"] == {"score", "preScore"}
    assert "ImageLocality" not in weights(second), "it only scores, so nothing is left of it"


def test_a_plugin_disabled_everywhere_is_gone() -> None:
    found = one("plugins:\n  multiPoint: {disabled: [{name: NodePorts}]}")
    assert [use for use in default_profile(GATES).plugins if use.name != "NodePorts"] == [*found.plugins]


def test_a_plugin_disabled_at_one_point_takes_part_at_the_others() -> None:
    found = one("plugins:\n  filter: {disabled: [{name: TaintToleration}]}")
    assert found.plugins == default_profile(GATES).plugins
    assert found.disabled_points == {"TaintToleration": {"filter"}}


def test_a_weight_at_score_goes_before_that_of_multi_point() -> None:
    found = one(
        """plugins:
  multiPoint: {enabled: [{name: NodeAffinity, weight: 7}, {name: ImageLocality, weight: 8}]}
  score: {enabled: [{name: NodeAffinity, weight: 30}]}"""
    )
    assert (weights(found)["NodeAffinity"], weights(found)["ImageLocality"]) == (30, 8)
    assert [use.name for use in found.plugins] == [use.name for use in default_profile(GATES).plugins]


def test_a_plugin_enabled_again_without_a_weight_has_one_as_in_kubernetes() -> None:
    found = one("plugins:\n  multiPoint: {enabled: [{name: TaintToleration}]}")
    assert weights(found)["TaintToleration"] == 1


def test_with_everything_disabled_only_what_is_enabled_is_there_in_the_order_given() -> None:
    found = one(
        """plugins:
  multiPoint:
    disabled: [{name: '*'}]
    enabled: [{name: NodePorts}, {name: PrioritySort}, {name: NodeName}, {name: ImageLocality, weight: 5}]
  bind:
    enabled: BINDERS""".replace(
            "BINDERS", str([{"name": each.name} for each in REGISTRY if each.name == "DefaultBinder"])
        )
    )
    assert [use.name for use in found.plugins][:4] == [
        "NodePorts",
        "PrioritySort",
        "NodeName",
        "ImageLocality",
    ]
    assert weights(found)["ImageLocality"] == 5


def test_a_filter_enabled_by_name_is_asked_first() -> None:
    found = one("plugins:\n  filter: {enabled: [{name: NodePorts}, {name: NodeName}]}")
    assert [use.name for use in found.plugins][:2] == ["NodePorts", "NodeName"]
    assert {use.name for use in found.plugins} == {use.name for use in default_profile(GATES).plugins}


def test_a_plugin_enabled_at_one_point_alone_takes_part_only_there() -> None:
    found = one(
        """plugins:
  multiPoint: {disabled: [{name: NodeAffinity}]}
  score: {enabled: [{name: NodeAffinity, weight: 4}]}"""
    )
    assert found.plugins[-1].name == "NodeAffinity"
    assert found.disabled_points["NodeAffinity"] == frozenset(EXTENSION_POINTS) - {"score"}


def test_disabling_a_plugin_of_kube_scheduler_that_is_not_here_is_no_mistake() -> None:
    assert one("plugins:\n  multiPoint: {disabled: [{name: GangScheduling}]}").plugins


def test_every_default_plugin_takes_part_somewhere() -> None:
    for plugin in shipped.plugins():
        assert points_of(type(plugin)), plugin.name


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        (
            "NodeResourcesFit",
            "{ignoredResources: [example.com/a], scoringStrategy: {type: MostAllocated, resources: [{name: cpu}]}}",
            {
                "ignoredResources": ["example.com/a"],
                "ignoredResourceGroups": [],
                "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]},
            },
        ),
        (
            "NodeResourcesBalancedAllocation",
            "{kind: NodeResourcesBalancedAllocationArgs, resources: [{name: memory, weight: 1}]}",
            {"resources": [{"name": "memory", "weight": 1}]},
        ),
        (
            "NodeAffinity",
            "{addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 3, preference: "
            "{matchExpressions: [{key: a, operator: Exists}]}}]}}",
            {
                "addedAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 3,
                            "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                        }
                    ]
                }
            },
        ),
    ],
)
def test_arguments_are_handed_to_the_plugin(name: str, given: str, wanted: object) -> None:
    found = one(f"pluginConfig:\n- name: {name}\n  args: {given}")
    assert found.arguments[name] == wanted


def test_a_file_is_read_from_disk(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(HEAD)
    assert load_scheduler_config(str(file), GATES).profiles == (default_profile(GATES),)
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read: No such file"):
        load_scheduler_config(str(tmp_path / "none.yaml"), GATES)


# -- what is said about a bad one


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "sched.yaml: nothing in it, want one KubeSchedulerConfiguration"),
        ("[1]", "sched.yaml:1: want a KubeSchedulerConfiguration, got a list"),
        ("b: 1\na: }", "sched.yaml:2: not YAML"),
        ("kind: KubeSchedulerConfiguration", "sched.yaml:1: apiVersion is missing, want kubescheduler"),
        (
            "kind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v1beta3",
            "sched.yaml:2: apiVersion: 'kubescheduler.config.k8s.io/v1beta3' is not supported, "
            "want kubescheduler.config.k8s.io/v1",
        ),
        (
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: Pod",
            "sched.yaml:2: kind: 'Pod' is not supported, want KubeSchedulerConfiguration",
        ),
        (HEAD + "---\n" + HEAD, "sched.yaml: 2 documents in it"),
        (HEAD + "kind: Again", "sched.yaml:3: kind: already on line 2"),
    ],
)
def test_what_is_no_configuration_is_told_from_one(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_scheduler_config(text.encode(), "sched.yaml", GATES)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("profile: []", "sched.yaml:3: profile: unknown field (did you mean profiles?)"),
        ("parallelism: 0", "sched.yaml:3: parallelism: Invalid value: 0: should be an integer value greater"),
        ("parallelism: many", 'parallelism: Invalid value: "many": want a whole number, got a text'),
        ("parallelism: true", "parallelism: Invalid value: true: want a whole number, got true or false"),
        ("percentageOfNodesToScore: 101", "Invalid value: 101: not in valid range [0-100]"),
        ("podInitialBackoffSeconds: 0", "Invalid value: 0: must be greater than 0"),
        (
            "podInitialBackoffSeconds: 30",
            "podMaxBackoffSeconds: Invalid value: 10: must be at least podInitialBackoffSeconds, which is 30",
        ),
        (
            "leaderElection: {leaseDuration: soon}",
            'leaseDuration: Invalid value: "soon": want a span of time',
        ),
        ("leaderElection: {leaseDuration: 5s}", "must be greater than renewDeadline, which is 10s"),
        (
            "leaderElection: {retryPeriod: -1s}",
            'retryPeriod: Invalid value: "-1s": must be greater than zero',
        ),
        (
            "leaderElection: {resourceLock: endpoints}",
            'Unsupported value: "endpoints": supported values: "leases"',
        ),
        ("clientConnection: {burst: -1}", "clientConnection.burst: Invalid value: -1: must be non-negative"),
        ("extenders: [{urlPrefix: 'http://a'}]", "sched.yaml:3: extenders[0]: extenders are not supported"),
        ("profiles: {}", "profiles: Invalid value: {}: want a list, got a map"),
        ("profiles: [5]", "profiles[0]: want a map, got a number"),
        (
            "profiles: [{}, {schedulerName: b}]",
            "profiles[0].schedulerName: Required value: every profile needs",
        ),
        (
            "profiles:\n- {schedulerName: b}\n- {schedulerName: b}",
            'sched.yaml:5: profiles[1].schedulerName: Duplicate value: "b"',
        ),
    ],
)
def test_a_bad_value_is_told_with_file_line_field_and_what_is_allowed(text: str, said: str) -> None:
    assert said in refused(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "multiPoint: {enabled: [{name: NodeAfinity}]}",
            'sched.yaml:6: profiles[0].plugins.multiPoint.enabled[0].name: Invalid value: "NodeAfinity": '
            "no such plugin (did you mean NodeAffinity?); there are: SchedulingGates, ",
        ),
        ("filter: {enabled: [{name: Zzz}]}", "no such plugin (there are: SchedulingGates, PrioritySort"),
        (
            "filter: {disabled: [{name: NodeNames}]}",
            'disabled[0].name: Invalid value: "NodeNames": no such plugin',
        ),
        (
            "score: {enabled: [{name: NodeAffinity, weight: -2}]}",
            "sched.yaml:6: profiles[0].plugins.score.enabled[0].weight: Invalid value: -2: must be from 0 to",
        ),
        (
            "score: {enabled: [{name: NodePorts}]}",
            'Invalid value: "NodePorts": takes no part in score; it can be enabled at: multiPoint, preFilter, filter',
        ),
        ("scores: {}", "profiles[0].plugins.scores: unknown field (did you mean score?)"),
        ("filter: {enable: []}", "profiles[0].plugins.filter.enable: unknown field (did you mean enabled?)"),
        (
            "multiPoint: {enabled: [{name: NodePorts}, {name: NodePorts}]}",
            'multiPoint.enabled[1].name: Duplicate value: "NodePorts"',
        ),
        (
            "queueSort: {disabled: [{name: '*'}]}",
            "queueSort: Required value: one plugin must be enabled, of: PrioritySort",
        ),
        ("placementScore: {enabled: [{name: NodePorts}]}", "no plugin takes part at this extension point"),
    ],
)
def test_a_bad_plugin_is_told_with_the_nearest_known_one(text: str, said: str) -> None:
    assert said in refused(f"profiles:\n- schedulerName: a\n  plugins:\n    {text}")


def test_a_plugin_whose_gate_is_off_is_told_with_the_gate() -> None:
    off = Gates.of("1.37", "NodeReadinessGates=false")
    text = "profiles:\n- plugins: {multiPoint: {enabled: [{name: NodeReadinessGates}]}}"
    said = refused(text, off)
    assert '"NodeReadinessGates": exists only with the feature gate NodeReadinessGates=true' in said


def test_all_profiles_sort_their_queue_alike() -> None:
    text = """
profiles:
- schedulerName: a
- schedulerName: b
  plugins: {queueSort: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}]}}
"""
    assert 'profiles[1].plugins.queueSort: Invalid value: ["PrioritySort"]: must be the same' in refused(text)


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("Nonsense", "{}", 'pluginConfig[0].name: Invalid value: "Nonsense": no such plugin'),
        ("NodePorts", "{a: 1}", "pluginConfig[0].args: NodePorts takes no arguments"),
        (
            "NodeAffinity",
            "{kind: Other}",
            'args.kind: Unsupported value: "Other": supported values: "NodeAffinityArgs"',
        ),
        ("NodeAffinity", "{apiVersion: v2}", 'supported values: "kubescheduler.config.k8s.io/v1"'),
        (
            "NodeAffinity",
            "{addedAffinty: {}}",
            "args.addedAffinty: unknown field (did you mean addedAffinity?)",
        ),
        ("NodeAffinity", "{addedAffinity: {need: 1}}", "args.addedAffinity.need: unknown field"),
        (
            "NodeAffinity",
            "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
            "[{matchExpressions: [{key: a, operator: Near}]}]}}}",
            'nodeSelectorTerms[0].matchExpressions[0].operator: Invalid value: "Near"',
        ),
        (
            "NodeAffinity",
            "{addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 'x'}]}}",
            "preferredDuringSchedulingIgnoredDuringExecution[0].weight: Expected int, got str",
        ),
        ("NodeResourcesFit", "{ignoredResources: ['a b']}", 'ignoredResources[0]: Invalid value: "a b"'),
        ("NodeResourcesFit", "{ignoredResourceGroups: [a/b]}", "resource group name can't contain '/'"),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: Fullest}}",
            'scoringStrategy.type: Unsupported value: "Fullest": supported values: "LeastAllocated", '
            '"MostAllocated", "RequestedToCapacityRatio"',
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: LeastAllocated, resources: [{name: cpu, weight: 101}]}}",
            "resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100]",
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: RequestedToCapacityRatio}}",
            "requestedToCapacityRatio: Required value: must be specified when type is RequestedToCapacityRatio",
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: MostAllocated, requestedToCapacityRatio: {shape: []}}}",
            "requestedToCapacityRatio: Forbidden: must be nil when type is not RequestedToCapacityRatio",
        ),
        (
            "NodeResourcesFit",
            "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: "
            "[{utilization: 50, score: 11}, {utilization: 50, score: 1}]}}}",
            "shape[1].utilization: Invalid value: 50: values must be sorted in increasing order",
        ),
        (
            "NodeResourcesBalancedAllocation",
            "{resources: [{name: cpu, weight: 2}]}",
            "resources[0].weight: Invalid value: 2: must be 1",
        ),
        (
            "NodeResourcesBalancedAllocation",
            "{resources: [{name: cpu}, {name: cpu}]}",
            'resources[1].name: Duplicate value: "cpu"',
        ),
    ],
)
def test_bad_arguments_are_told(name: str, args: str, said: str) -> None:
    assert said in refused(f"profiles:\n- pluginConfig:\n  - name: {name}\n    args: {args}")


def test_everything_that_is_wrong_is_told_at_once() -> None:
    said = refused("parallelism: 0\nextendres: []\nprofiles:\n- plugins: {filter: {enabled: [{name: X}]}}")
    assert said.startswith("sched.yaml: 3 things are wrong:\n  sched.yaml:")
    assert len(said.splitlines()) == 4
