"""`nodeward dra-driver`: what is wrong with flags and files is told before anything is connected."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeward.cli.main import main

GPUS = str(Path(__file__).parents[2] / "examples" / "dra" / "gpus.yaml")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere.yaml"], "nowhere.yaml: cannot be read: No such file or directory"),
        ([GPUS], "pools[0]: want one of nodeName, nodeSelector, allNodes, or a driver with a node part"),
        ([GPUS, "--node", "n1"], "--kubelet-dir: say where the kubelet of --node keeps its files"),
        ([GPUS, "--node", "n1", "--kubelet-dir", "k", "--slow", "x"], "--slow: time: invalid duration"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dra-driver", *words]) == 1
    assert told in capsys.readouterr().err
