"""The static token file: a CSV of `token,user,uid,"group1,group2"`, read once when the server starts."""

from __future__ import annotations

import csv
import io

from nodeward.apiserver.auth.user import User
from nodeward.base.errors import ConfigError


def read_token_file(text: str, path: str) -> tuple[dict[str, User], list[str]]:
    """Return users by token, and warnings for the log; of a token that occurs twice the last line counts."""
    tokens: dict[str, User] = {}
    warnings: list[str] = []
    number = 0
    try:
        for record in csv.reader(io.StringIO(text), strict=True):
            if not record:
                continue
            if len(record) < 3:
                raise ConfigError(
                    f"token file '{path}' must have at least 3 columns (token, user name, user uid), "
                    f"found {len(record)}"
                )
            number += 1
            token, name, uid = record[:3]
            if not token:
                warnings.append(
                    f"empty token has been found in token file '{path}', record number '{number}'"
                )
                continue
            if token in tokens:
                warnings.append(
                    f"duplicate token has been found in token file '{path}', record number '{number}'"
                )
            groups = tuple(record[3].split(",")) if len(record) > 3 else ()
            tokens[token] = User(name, uid, groups)
    except csv.Error as error:
        raise ConfigError(f"token file '{path}', record {number + 1}: {error}") from error
    return tokens, warnings
