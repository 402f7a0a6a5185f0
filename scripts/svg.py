"""A picture as SVG, and the colours of this project's pictures."""
import html
import sys

INK, MUTED, RULE = "#1f2328", "#59636e", "#d1d9e0"
# Fill and line of what belongs together.
BLUE, GREEN, AMBER, GRAY = ("#ddf4ff", "#0969da"), ("#dafbe1", "#1a7f37"), ("#fff1d6", "#bc4c00"), \
    ("#f6f8fa", "#818b98")
FAINT = ("#f6f8fa", "#afb8c1")
SANS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif"
# Pictures are shown as narrow as 400 px, where text of SMALL px must still be read: 9 px or more.
WIDTH, SMALL, NARROW, LEGIBLE = 520, 12, 400, 9
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


class Svg:
    """A picture on a white sheet, so that it reads alike on a light and on a dark page."""

    def __init__(self, height, title, description, width=WIDTH):
        if SMALL * NARROW / width < LEGIBLE:
            sys.exit(f"pictures: {width} px are too wide: at {NARROW} px small text would have "
                     f"{SMALL * NARROW / width:.1f} px, expected {LEGIBLE} or more")
        self.width, self.height = width, height
        self.lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" aria-labelledby="title desc">',
            f'<title id="title">{html.escape(title)}</title>',
            f'<desc id="desc">{html.escape(description)}</desc>',
            "<style>",
            f"text {{ font-family: {SANS}; font-size: 14px; fill: {INK}; }}",
            f".mono {{ font-family: {MONO}; }}",
            f".muted {{ fill: {MUTED}; }}",
            f".small {{ font-size: {SMALL}px; }}",
            ".strong { font-weight: 600; }",
            "</style>",
            f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="10" fill="#ffffff" '
            f'stroke="{RULE}"/>',
        ]

    def text(self, x, y, text, classes="", anchor="start", room=None, fill=None):
        """`room`: the width that there is; text that may be wider in a wide font is refused."""
        size = SMALL if "small" in classes else 14
        if room and len(text) * size * (0.64 if "strong" in classes else 0.60) > room:
            sys.exit(f"pictures: '{text}' does not fit {room} px")
        self.lines.append(
            f'<text x="{x:g}" y="{y:g}"' + (f' class="{classes}"' if classes else "")
            + (f' text-anchor="{anchor}"' if anchor != "start" else "")
            + (f' style="fill: {fill}"' if fill else "") + f">{html.escape(text)}</text>")

    def rect(self, x, y, width, height, colors, rx=6, dashed=False, stroke_width=1.2):
        fill, line = colors
        self.lines.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{rx}" fill="{fill}" '
            f'stroke="{line}" stroke-width="{stroke_width}"'
            + (' stroke-dasharray="4 3"' if dashed else "") + "/>")

    def box(self, x, y, width, height, label, below, colors):
        self.rect(x, y, width, height, colors)
        middle = x + width / 2
        self.text(middle, y + height / 2 - 4, label, "strong", "middle", room=width)
        self.text(middle, y + height / 2 + 14, below, "small muted", "middle", room=width)

    def path(self, d, color=MUTED, width=1.5, dashed=False):
        self.lines.append(f'<path d="{d}" fill="none" stroke="{color}" stroke-width="{width}"'
                          + (' stroke-dasharray="5 4"' if dashed else "") + "/>")

    def circle(self, x, y, radius, color, width=1):
        self.lines.append(f'<circle cx="{x:.4g}" cy="{y:.4g}" r="{radius}" fill="#ffffff" '
                          f'stroke="{color}" stroke-width="{width}"/>')

    def arrow(self, *points, dashed=False):
        """A line through the points, the last part straight up, down or aside, with a head there."""
        (x0, y0), (x, y) = points[-2:]
        along = ((x > x0) - (x < x0), (y > y0) - (y < y0))
        behind = (x - 7 * along[0], y - 7 * along[1])
        self.path("M" + " L".join(f"{a:g} {b:g}" for a, b in (*points[:-1], behind)), dashed=dashed)
        across = (4 * along[1], 4 * along[0])
        self.lines.append(
            f'<path d="M{x:g} {y:g} L{behind[0] + across[0]:g} {behind[1] + across[1]:g} '
            f'L{behind[0] - across[0]:g} {behind[1] - across[1]:g} Z" fill="{MUTED}"/>')

    def __str__(self):
        return "\n".join([*self.lines, "</svg>"]) + "\n"
