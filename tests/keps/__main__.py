"""`make keps`: how many statements of each KEP are marked on a test, and whether there is a ledger to compare with.

Read from the source alone, so that it runs without an environment. A mark is `@statement("6122-31")` on a test; the
ledger of a KEP is `docs/keps/kep-6122.md`. Without a ledger nobody can say how many statements are open, and this
says so.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPS = {
    "5328": "Node Declared Features",
    "5471": "Extended Toleration Operators",
    "5233": "Node Readiness Gates",
    "6122": "Configurable Scaling Delay",
    "5945": "DRA Optional Node Preparation",
}


def marks(source: str) -> list[str]:
    """The ids of the statements that tests in this source prove, in order."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func).rpartition(".")[2] == "statement":
                    found.extend(str(ast.literal_eval(argument)) for argument in mark.args)
    return found


def report(root: Path) -> str:
    """One line per KEP."""
    sources = sorted((root / "tests").rglob("test_*.py"))
    marked = sorted({mark for path in sources for mark in marks(path.read_text(encoding="utf-8"))})
    lines = []
    for number, title in KEPS.items():
        count = sum(mark.startswith(f"{number}-") for mark in marked)
        has_ledger = (root / "docs" / "keps" / f"kep-{number}.md").exists()
        ledger = f"ledger docs/keps/kep-{number}.md" if has_ledger else "no ledger yet: all statements open"
        lines.append(f"KEP-{number} {title:32} {count:3} statements marked on tests; {ledger}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(report(ROOT) + "\n")
