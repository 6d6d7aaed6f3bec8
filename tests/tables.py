"""The tables of the README that are made from data. `python tests/tables.py` writes them again."""

from __future__ import annotations

import re
from pathlib import Path

from sseam.protocols import NAMES, load

README = Path(__file__).parent.parent / "README.md"


def dialects() -> str:
    """Every dialect with the deviations that it is known for; harmless ones need no permission."""
    lines = ["| protocol | dialect | known for |", "|---|---|---|"]
    for protocol in NAMES:
        module = load(protocol)
        for dialect in module.DIALECTS.values():
            codes = sorted(code for code in dialect.codes if module.DEVIATIONS.get(code) != "harmless")
            lines.append(f"| {protocol} | `{dialect.name}` | {', '.join(codes) or 'nothing of weight'} |")
    return "\n".join(lines)


TABLES = {"dialects": dialects}


def filled(text: str) -> str:
    """`text` with every table between its marks as the data has it."""
    for name, make in TABLES.items():
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        text = re.sub(f"(?s){start}.*?{end}", f"{start}{make()}\n{end}", text)
    return text


if __name__ == "__main__":
    README.write_text(filled(README.read_text(encoding="utf-8")), encoding="utf-8")
