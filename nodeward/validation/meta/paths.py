"""Paths inside volumes and on hosts: relative where they must be, never climbing up."""

from __future__ import annotations

from nodeward.base.fielderror import FieldError, invalid
from nodeward.base.fieldpath import FieldPath


def backstep_faults(path: str) -> list[str]:
    return ["must not contain '..'"] if ".." in path and ".." in path.split("/") else []


def descending_faults(path: str) -> list[str]:
    """A relative path that stays below where it starts."""
    faults = ["must be a relative path"] if path.startswith("/") else []
    return faults + backstep_faults(path)


def local_path_faults(path: str) -> list[str]:
    """As `descending_faults`, and not in the names the atomic writer uses for itself (`..data`)."""
    faults = descending_faults(path)
    if path.startswith("..") and not path.startswith("../"):
        faults.append("must not start with '..'")
    return faults


def validate_descending(path: str, at: FieldPath) -> list[FieldError]:
    return [invalid(at, path, fault) for fault in descending_faults(path)]


def validate_no_backsteps(path: str, at: FieldPath) -> list[FieldError]:
    return [invalid(at, path, fault) for fault in backstep_faults(path)]


def validate_local_path(path: str, at: FieldPath) -> list[FieldError]:
    return [invalid(at, path, fault) for fault in local_path_faults(path)]
