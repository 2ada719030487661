"""The page about declared features tells the truth: its examples run, and its table is the registry."""

from __future__ import annotations

import re

import pytest

from nodeward.cli.main import build_parser
from nodeward.features.declared import REGISTRY
from tests.tidy.repository import read

PAGE = read("docs/declared-features.md")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = re.findall(r"^nodeward (features .+?)(?: +#.*)?$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_examples_run(number: int) -> None:
    source = EXAMPLES[number]
    assert source.count("assert ") >= 2, "an example that claims nothing shows nothing"
    exec(compile(source, f"docs/declared-features.md, example {number}", "exec"), {})


def test_there_is_an_example_of_everything_an_autoscaler_asks() -> None:
    asked = "".join(EXAMPLES)
    for name in (
        "discover_node_features",
        "infer_for_pod_scheduling",
        "match_node_feature_set",
        "match_column",
    ):
        assert f"{name}(" in asked
    assert len(COMMANDS) == 5


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_are_understood(command: str) -> None:
    assert build_parser().parse_args(command.split()).command == "features"


def test_the_table_lists_the_registry_with_its_settings() -> None:
    rows = dict(
        re.findall(r"^\| (\w+) \| (.*)\|$", PAGE.partition("## The features there are")[2], re.MULTILINE)
    )
    rows.pop("feature")
    assert sorted(rows) == sorted(feature.name for feature in REGISTRY)
    for feature in REGISTRY:
        for key, value in feature.requirements.static_config.items():
            assert f"`{key}={value}`" in rows[feature.name]
