# SPDX-License-Identifier: BSD-3-Clause
"""The page that a notebook shows for a feature: a piece of HTML, without scripts or network access,
in the colours of the page around it."""
import html

import numpy as np

STYLE = ("<style>.sagitta td{text-align:left;font-family:monospace;white-space:pre-wrap}"
         ".sagitta mark{background:#fc6;color:#000}"
         ".sagitta svg{fill:currentColor;font-size:11px}</style>")
WIDTH, HEIGHT, MARGIN = 240, 60, 14  # of the histogram, in pixels


def text_of(text):
    return html.escape(text).replace("\n", "\u23ce")


def picture(counts, edges):
    """Draw the bars of a histogram and the ends of its axis."""
    step, most = WIDTH // len(counts), max(1, int(counts.max()))
    tall = np.ceil(counts * HEIGHT / most).astype(int)
    bars = "".join(f"v-{one}h{step - 1}v{one}zm{step} 0" if one else f"m{step} 0" for one in tall)
    return (f"<svg role='img' aria-label='histogram of codes' width='{WIDTH}' "
            f"height='{HEIGHT + MARGIN}'><path d='M0 {HEIGHT}{bars}'/>"
            f"<text y='{HEIGHT + MARGIN - 2}'>{edges[0]:.3g}</text><text x='{WIDTH}' "
            f"y='{HEIGHT + MARGIN - 2}' text-anchor='end'>{edges[-1]:.3g}</text></svg>")


def _list(pairs):
    return ", ".join(f"{text_of(name)} ({value:.3g})" for name, value in pairs)


def _facts(feature):
    """The known facts about the feature, by name."""
    found = {"mostly on": _list((f"'{word}'", part) for word, part in feature.words()),
             "nearest": _list((str(other.atom), cosine) for other, cosine in feature.nearest()),
             "raises": _list((f"'{word}'", value) for word, value in feature.raises())}
    if feature.stability is not None:
        found["stability"] = f"{feature.stability:.3g}, the largest cosine in another seed"
    return {name: value for name, value in found.items() if value}


def page_of(feature, head):
    """The HTML of the page without STYLE."""
    rows = []
    for one in feature.top():
        before, token, after = map(text_of, (one.before, one.token, one.after))
        rows.append(f"<tr><td>{one.row}<td>{one.code:.4g}<td>{before}<mark>{token}</mark>{after}")
    facts = "".join(f"<div>{name}: {value}</div>" for name, value in _facts(feature).items())
    counts, edges = feature.histogram()
    drawn = picture(counts, edges) if np.any(counts) else ""
    return (f"<table class='sagitta'><caption>{html.escape(head)}{facts}{drawn}</caption>"
            f"<tr><th>row<th>code<th>tokens{''.join(rows)}</table>")
