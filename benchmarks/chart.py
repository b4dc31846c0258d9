"""A bar chart of ratios to target, as SVG, without any drawing library."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

_BAR, _LEFT, _SCALE = 22, 330, 180


def write_chart(path: Path, bars: Sequence[tuple[str, float]]) -> None:
    """One bar per row; the line is the target."""
    width, height = _LEFT + 3 * _SCALE + 60, _BAR * len(bars) + 40
    size = f'width="{width}" height="{height}"'
    font = 'font-family="sans-serif" font-size="12"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>']
    for index, (name, ratio) in enumerate(bars):
        top = 20 + index * _BAR
        length = min(ratio, 3.0) * _SCALE
        colour = "#2f9e44" if ratio >= 1 else "#e8590c"
        bar = f'width="{length:.0f}" height="{_BAR - 6}" fill="{colour}"'
        right = f'x="{_LEFT - 8}" text-anchor="end"'
        parts.append(f'<text {right} y="{top + 13}">{escape(name)}</text>')
        parts.append(f'<rect x="{_LEFT}" y="{top + 2}" {bar}/>')
        parts.append(f'<text x="{_LEFT + length + 6:.0f}" y="{top + 13}">{ratio:.2f} ×</text>')
    target = _LEFT + _SCALE
    dashes = 'stroke="#333" stroke-dasharray="4 3"'
    parts.append(f'<line x1="{target}" y1="10" x2="{target}" y2="{height - 10}" {dashes}/>')
    parts.append("</svg>")
    path.write_text("\n".join(parts) + "\n")
