"""The table of all rows, for people and for the docs."""

import re
from pathlib import Path

HEAD = (
    "| what is done | log | sent | lost because of us | p50 / p99 / slowest, quiet → broken (ms) "
    "| our own part, p50 / p99 (ms) | loops: late, missed | whole again | ill for | `/readyz` meanwhile "
    "| logs acknowledged, lost | not written | floors |\n"
    "|---|---|--:|--:|---|---|---|--:|--:|---|---|--:|---|"
)


def markdown(results):
    return "\n".join([HEAD, *map(line, results), "", *map(remarks, results)])


def line(result):
    row = result.row
    lost = str(len(result.lost))
    if result.broken_off:
        lost += f" (and {result.broken_off} in flight at the killed one)"
    if result.provider_errors or result.breaker:
        lost += f" (the provider's own errors {result.provider_errors}, breaker {result.breaker})"
    late = f"{result.late} (by ≤ {result.latest})" if result.late else "0"
    logs = f"{result.acknowledged}, {len(result.logs_lost)}"
    if result.logs_refused:
        logs += f" ({result.logs_refused} refused)"
    cells = [
        f"**{row.name}**: {row.about}",
        row.log,
        f"{result.sent}",
        lost,
        f"{spoken(result.quiet)} → {spoken(result.during)}",
        f"{spoken(result.own_quiet, 2)} → {spoken(result.own_during, 2)}",
        f"{result.loops}: {late}, {len(result.missed)}",
        f"{result.recovery:.2f} s" if result.recovery is not None else "no",
        f"{result.ill_for:.1f} s",
        "; ".join(result.readyz) or "ready",
        logs,
        f"{result.unwritten}",
        "✗" if result.broken_floors() else "✓",
    ]
    return "| " + " | ".join(cells) + " |"


def spoken(figures, count=3):
    if figures is None:
        return "–"
    return " / ".join(f"{figure:.1f}" if figure < 100 else f"{figure:.0f}" for figure in figures[:count])


def remarks(result):
    """What did not fit into the table."""
    hints = " → ".join(f"{figure:.0f}" for figure in result.meant_hints)
    said = [
        f"`{result.row.name}`: " + (", ".join(result.metrics) or "nothing was counted as degraded"),
        f"a decision log was answered within {spoken(result.log_seconds)} ms",
        f"hints a minute to agents that say the same in other words: {hints} (quiet → broken → afterwards)",
    ]
    floors = [f"  - **✗ {floor}**" for floor in result.broken_floors()]
    return "\n".join(["- " + "; ".join(said) + ".", *floors])


def write(path, results, about):
    """Replaces the block of the file, or makes the file."""
    path = Path(path)
    text = path.read_text()
    block = f"<!-- chaos -->\n\n{about}\n\n{markdown(results)}\n\n<!-- end of chaos -->"
    replaced, count = re.subn(r"<!-- chaos -->\n.*?<!-- end of chaos -->", lambda _: block, text, flags=re.DOTALL)
    if count != 1:
        raise SystemExit(f"{path} has no block `<!-- chaos -->`")
    path.write_text(replaced)
