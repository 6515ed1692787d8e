"""Plots as SVG, written by hand: no dependency, sharp at every size, and legible on light and dark pages."""
from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Sequence

STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .title { font-size: 15px; font-weight: 600; }
  .faint { fill: #59636e; font-size: 12px; }
  .grid { stroke: #d1d9e0; stroke-width: 1; }
  .axis { stroke: #59636e; stroke-width: 1; }
  .lead { stroke: #818b98; stroke-width: 1; }
  .number { font-size: 11px; font-weight: 600; fill: #ffffff; }
  .c0 { fill: #0969da; } .c1 { fill: #54aeff; } .c2 { fill: #8c959f; } .c3 { fill: #bc8cff; }
  .page { fill: #ffffff; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .faint { fill: #9198a1; }
    .grid { stroke: #30363d; }
    .axis, .lead { stroke: #9198a1; }
    .number { fill: #0d1117; }
    .c0 { fill: #4493f8; } .c1 { fill: #a5d6ff; } .c2 { fill: #7d8590; } .c3 { fill: #d2a8ff; }
    .page { fill: #0d1117; }
  }
"""


@dataclass(frozen=True)
class Point:
    name: str
    false_alarms: float
    f1: float
    ours: bool


def scatter(panels: Sequence[tuple[str, Sequence[Point]]]) -> str:
    """F1 against false alarms, one panel per data set. Points close together are pulled apart with a lead line."""
    size, left, top, gap = 330, 70, 60, 60
    names = [point.name for point in panels[0][1]]
    legend = left + len(panels) * (size + gap)
    body: list[str] = []
    for index, (title, points) in enumerate(panels):
        x0 = left + index * (size + gap)
        body.append(label(x0 + size / 2, top - 14, title, "title", "middle"))
        body += scatter_axes(x0, top, size, first=index == 0)
        leads: list[str] = []
        markers: list[str] = []
        placed: list[tuple[float, float]] = []
        for point in points:
            x, y = x0 + squeeze(point.false_alarms) * size, top + (1 - point.f1) * size
            place = free_place(x, y, placed, x0 + size)
            placed.append(place)
            if place != (x, y):
                leads.append(line(x, y, *place, "lead"))
            about = f"{point.name}: F1 {point.f1:.2f}, false alarms {point.false_alarms:.1%}"
            markers.append(marker(*place, names.index(point.name) + 1, point.ours, about))
        body += leads + markers
    for row, point in enumerate(panels[0][1]):
        y = top + 10 + row * 22
        body.append(marker(legend + 9, y - 4, row + 1, point.ours, point.name))
        body.append(label(legend + 26, y, point.name))
    body.append(label(left, top + size + 50, "healthy runs with a false alarm (square-root scale); better is up and left", "faint"))
    return page(legend + 230, top + size + 66, "F1 against false alarms, all detectors", body)


def marker(x: float, y: float, number: int, ours: bool, about: str) -> str:
    return (
        f'<g><title>{escape(about)}</title><circle class="{"c0" if ours else "c2"}" cx="{x:.1f}" cy="{y:.1f}" r="9"/>'
        + label(x, y + 4, str(number), "number", "middle")
        + "</g>"
    )


def scatter_axes(x0: float, top: float, size: float, first: bool) -> list[str]:
    body = []
    for share in (0, 0.02, 0.1, 0.25, 0.5, 1):
        x = x0 + squeeze(share) * size
        body.append(line(x, top, x, top + size, "grid"))
        body.append(label(x, top + size + 24, f"{share:.0%}", "faint", "middle"))
    for step in range(0, 6):
        y = top + (1 - step / 5) * size
        body.append(line(x0, y, x0 + size, y, "grid"))
        body.append(label(x0 - 14, y + 4, f"{step / 5:.1f}", "faint", "end"))
    if first:
        body.append(f'<text class="faint" transform="translate({x0 - 46},{top + size / 2}) rotate(-90)" text-anchor="middle">F1</text>')
    return body


def squeeze(share: float) -> float:
    return math.sqrt(share)


def free_place(x: float, y: float, placed: list[tuple[float, float]], right: float) -> tuple[float, float]:
    """The nearest place to (x, y) where a marker covers no other."""
    for radius in range(0, 120, 6):
        for turn in range(12 if radius else 1):
            angle = turn * math.pi / 6
            px, py = x + radius * math.cos(angle), y + radius * math.sin(angle)
            if px <= right + 10 and all(math.dist((px, py), other) >= 20 for other in placed):
                return px, py
    return x, y


def bars(title: str, groups: Sequence[str], series: Sequence[tuple[str, Sequence[float]]]) -> str:
    """Recall per kind of loop: a group of bars per kind, a bar per detector."""
    left, top, height, bar, space = 56, 84, 240, 20, 26
    width = len(groups) * (len(series) * bar + space)
    body = [label(left, 28, title, "title")]
    x = left
    for index, (name, _) in enumerate(series):
        body.append(f'<rect class="c{index}" x="{x}" y="46" width="12" height="12" rx="2"/>')
        body.append(label(x + 18, 57, name))
        x += 40 + 7 * len(name)
    for step in range(6):
        y = top + (1 - step / 5) * height
        body.append(line(left, y, left + width, y, "grid"))
        body.append(label(left - 8, y + 4, f"{step / 5:.0%}", "faint", "end"))
    for g, group in enumerate(groups):
        x0 = left + space / 2 + g * (len(series) * bar + space)
        for index, (name, values) in enumerate(series):
            tall = max(values[g] * height, 1)
            body.append(
                f'<rect class="c{index}" x="{x0 + index * bar:.1f}" y="{top + height - tall:.1f}" width="{bar - 3}" height="{tall:.1f}" rx="2">'
                f"<title>{escape(name)}, {escape(group)}: {values[g]:.0%}</title></rect>"
            )
        head, _, count = group.partition(" (")
        middle = x0 + len(series) * bar / 2
        body.append(label(middle, top + height + 18, head, "", "middle"))
        body.append(label(middle, top + height + 34, f"({count}", "faint", "middle"))
    return page(max(left + width + 20, x + 10), top + height + 48, title, body)


def histogram(title: str, series: Sequence[tuple[str, Sequence[int]]], last: int = 15) -> str:
    """How many steps after the onset the alarms come; the last bar holds everything later."""
    left, top, height, bar = 56, 84, 220, 17
    counts = [[sum(min(value, last) == step for value in values) for step in range(last + 1)] for _, values in series]
    most = max(1, *(max(row) for row in counts))
    tick = next(t for t in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, most) if t * 6 >= most)
    ceiling = tick * math.ceil(most / tick)
    pitch = len(series) * bar + 10
    width = (last + 1) * pitch
    body = [label(left, 28, title, "title")]
    x = left
    for index, (name, values) in enumerate(series):
        body.append(f'<rect class="c{index}" x="{x}" y="46" width="12" height="12" rx="2"/>')
        body.append(label(x + 18, 57, f"{name} ({len(values)} alarms)"))
        x += 120 + 7 * len(name)
    for value in range(0, ceiling + 1, tick):
        y = top + (1 - value / ceiling) * height
        body.append(line(left, y, left + width, y, "grid"))
        body.append(label(left - 8, y + 4, str(value), "faint", "end"))
    for step in range(last + 1):
        x0 = left + 5 + step * pitch
        for index, row in enumerate(counts):
            tall = row[step] / ceiling * height
            if tall:
                body.append(f'<rect class="c{index}" x="{x0 + index * bar:.1f}" y="{top + height - tall:.1f}" width="{bar - 2}" height="{tall:.1f}" rx="2"/>')
        body.append(label(x0 + len(series) * bar / 2, top + height + 18, f"{step}+" if step == last else str(step), "faint", "middle"))
    body.append(label(left + width / 2, top + height + 40, "steps from onset to alarm", "faint", "middle"))
    return page(left + width + 20, top + height + 54, title, body)


def page(width: float, height: float, title: str, body: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" role="img">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n"
        f'<rect class="page" width="100%" height="100%"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def label(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
