"""Starts that are killed, and two servers in one directory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nodeward.apiserver.pki import Pki
from nodeward.machinery.clock import RealClock

#: Makes all certificates; dies, as by SIGKILL, at the moment the Nth file is put in its place (or just before).
KILLED_AT = """
import os, sys
from pathlib import Path
from nodeward.apiserver.pki import Pki, write_private
from nodeward.machinery.clock import RealClock

left, is_before = int(sys.argv[2]), sys.argv[3] == "before"
replace = os.replace

def count(source, target):
    global left
    left -= 1
    if not left and is_before:
        os._exit(9)
    replace(source, target)
    if not left:
        os._exit(9)

os.replace = count
pki = Pki(Path(sys.argv[1]), RealClock().now_ns())
pki.serving("localhost")
pki.service_account_key()
pki.admin()
pki.kubelet_client()
"""
FILES = 9


@pytest.mark.parametrize("moment", range(1, FILES + 1))
@pytest.mark.parametrize("side", ["before", "after"])
def test_a_start_killed_while_it_makes_certificates_is_followed_by_one_that_succeeds(
    tmp_path: Path, moment: int, side: str
) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_AT, str(tmp_path), str(moment), side], check=False, timeout=60
    )
    assert killed.returncode == 9
    pki = Pki(tmp_path, RealClock().now_ns())
    kept = pki.serving("localhost"), pki.service_account_key(), pki.admin(), pki.kubelet_client()
    again = Pki(tmp_path, RealClock().now_ns())
    assert kept == (
        again.serving("localhost"),
        again.service_account_key(),
        again.admin(),
        again.kubelet_client(),
    )
