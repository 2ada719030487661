"""The page for people who want a Kubernetes API in their own tests: its examples are test files, and they pass."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.repository import read

EXAMPLES = re.findall(r"```python\n(.*?)```", read("docs/in-tests.md"), re.DOTALL)


@pytest.mark.slow
def test_the_examples_for_other_peoples_tests_pass_as_they_stand(tmp_path: Path) -> None:
    assert len(EXAMPLES) == 2
    for number, source in enumerate(EXAMPLES):
        (tmp_path / f"test_example_{number}.py").write_text(source)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        cwd=tmp_path,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    assert "2 passed" in ended.stdout
