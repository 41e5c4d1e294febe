"""Rules of every figure: texts lie inside it and are legible on a phone, and the legend shows what is drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from farlink.channels.calls.links import Call, Link
from farlink.channels.calls.samples import PAUSE_S
from farlink.channels.calls.study import Study, _part
from farlink.plot import call_drops, style
from farlink.plot.against_grid import against_grid
from farlink.plot.bars import Bar, bars
from farlink.plot.curves import Anchor, Line, curves
from farlink.plot.error_map import error_maps
from farlink.plot.error_rate import error_rate
from farlink.plot.lines import lines
from farlink.plot.points_on_curves import Panel, Traced, points_on_curves
from farlink.plot.printed import Measured, beside_printed

BERS = [1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4]
LONG = "goodput from first message to last delivery of all messages (kb/s)"


def falling(rate: float, half: float = math.nan) -> list[tuple[float, float, float]]:
    return [(x, 1 / (1 + x * rate), half) for x in BERS]


def fig_curves():
    named = ["Tahoe", "Reno", "NewReno", "STP, window of 70"]
    both = [
        Line(f"{n}, {kind}", falling(10.0 ** (6 + i)), i, kind != "bursts")
        for kind in ("bursts", "independent")
        for i, n in enumerate(named)
    ]
    said = [Anchor((1e-8, None), "“above 1e-8”"), Anchor((1e-4, 0.14), "14 %"), Anchor((None, 0.5), "half of it")]
    return curves(both, x_label="bit error rate", y_label="throughput (share of the link)", anchors=said)


def fig_lines():
    drawn = [Line(f"{n} words of parity", falling(1e3 / n, 0.01)) for n in (1, 4, 8, 16, 32, 64, 96, 128)]
    return lines(drawn, x_label="bit error rate", y_label=LONG, is_ordered=True)


def fig_log_lines():
    drawn = [Line(f"{n} words", [(x, x + 1.0, math.nan) for x in (0, 4, 8, 16, 256)]) for n in (1, 2)]
    return lines(drawn, x_label=LONG, y_label="overhead (MB)", is_y_log=True, x_ticks=(0, 4, 8, 16, 256))


def fig_bars():
    return bars([Bar(f"copies {i}", 20 / i, 0.5, 19 / i) for i in range(1, 9)], x_label=LONG, bound_words="worst packet " * 6)


def fig_printed():
    named = [f"{place}, selective repeat, {n} bytes" for place in ("Testbed", "ATENAA", "FASOLT", "KIODO") for n in (500, 1500)]
    return beside_printed([Measured(name, 0.5, (0.6, math.nan)) for name in named], x_label=LONG)


def fig_map():
    ratios = {
        "Cardwell, whole rounds": {w: np.geomspace(0.02, 30, 104).reshape(8, 13) for w in ("window of 40", "no window limit")}
    }
    sizes = [f"{10**k} {unit}" for unit in ("B", "kB", "MB", "GB") for k in range(3)] + ["10 TB"]
    return error_maps(ratios, x_values=sizes, y_values=[f"{x} %" for x in range(8)], x_label="size", y_label="packet loss")


def fig_points():
    traced = [Traced(f"BER 1e-{k}", [(x, x * 10**-k) for x in (40, 400, 4000)], [(40, 0.1, 0.01)], (40, 0.1)) for k in range(4)]
    return points_on_curves([Panel(title, traced) for title in ("Testbed", "FASOLT")], x_label=LONG, y_label=LONG)


def fig_rates():
    return error_rate({"(7, 1/2) soft": [(x, 10.0**-x, 10.0**-x / 2, 10.0**-x * 2) for x in range(1, 8)]}, title="Codes")


def fig_places():
    figure, (ax,) = style.new_figure()
    ax.plot(range(8), range(8))
    style.name_places(ax, [f"earliest-\ndelivery\n{n}" for n in range(8)])
    return figure


FIGURES = [fig_curves, fig_lines, fig_log_lines, fig_bars, fig_printed, fig_map, fig_points, fig_rates, fig_places]


def texts(figure) -> list[Text]:
    found = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    return [text for text in found if text.axes is None or text.axes.get_visible()]


def outside(figure) -> list[str]:
    """Texts that reach over the edge of the figure by more than a pixel."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    whole = figure.bbox
    found = []
    both = [axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)]
    drawn = {label for axis in both for label in shown_ticks(axis)}
    # Ticks beyond the limits exist but are not drawn.
    ticks = {label for axis in both for tick in (*axis.majorTicks, *axis.minorTicks) for label in (tick.label1, tick.label2)}
    for text in texts(figure):
        if text in ticks and text not in drawn:
            continue
        box = text.get_window_extent(renderer)
        if box.x0 < whole.x0 - 1 or box.x1 > whole.x1 + 1 or box.y0 < whole.y0 - 1 or box.y1 > whole.y1 + 1:
            found.append(text.get_text())
    return found


def shown_ticks(axis):
    low, high = sorted(axis.get_view_interval())
    return [tick.label1 for tick in axis.majorTicks if low <= tick.get_loc() <= high]


@pytest.mark.parametrize("draw", FIGURES)
def test_no_text_is_cut_off(draw):
    assert outside(draw()) == []


@pytest.mark.parametrize("draw", FIGURES)
def test_every_text_is_legible_on_a_phone(draw):
    figure = draw()
    figure.draw(FigureCanvasAgg(figure).get_renderer())

    width_pt = 72 * figure.get_size_inches()[0]

    assert style.smallest_text_pt(figure) * style.NARROW_PX / width_pt >= style.LEAST_TEXT_PX
    assert style.least_width_px(figure) <= style.NARROW_PX
    # A raised exponent would be a third smaller.
    assert not [text.get_text() for text in texts(figure) if "^" in text.get_text()]


@pytest.mark.parametrize("has_intervals", [False, True])
def test_a_legend_shows_error_bars_only_where_there_are_some(has_intervals):
    half = 0.05 if has_intervals else math.nan
    drawn = [Line("sack", falling(1e6, half)), Line("reno", falling(1e7, half))]

    for figure in (curves(drawn, x_label="x", y_label="y"), lines(drawn, x_label="x", y_label="y")):
        assert [bars.has_yerr for bars in figure.axes[0].containers] == [has_intervals] * 2
    figure = beside_printed([Measured("one", 1.0, (1.1, half))], x_label="x")
    assert [bars.has_xerr for bars in figure.axes[0].containers] == [has_intervals]


def test_curves_that_hardly_differ_have_room_above():
    figure = lines([Line("delivered", [(0.0, 1.0, math.nan), (1.0, 0.99, math.nan)])], x_label="x", y_label="y")

    bottom, top = figure.axes[0].get_ylim()
    assert bottom == 0
    assert top >= 1.05


@pytest.mark.parametrize(("count", "letters"), [(4, 8), (6, 60), (23, 20), (23, 60)])
def test_long_names_do_not_squeeze_the_axes(count, letters):
    names = [f"{number} {'segment of ' * 6}"[:letters] for number in range(count)]
    summary = [
        {"flow": "all", "engine": "packet", "transport": name, "x": x, "goodput_bps": {"mean": 1e5 * x, "ci95": 1e3}}
        for name in names
        for x in (1.0, 2.0, 3.0)
    ]
    figure = against_grid(summary, ["x", "transport"])
    figure.draw(FigureCanvasAgg(figure).get_renderer())

    assert all(ax.bbox.height / figure.dpi >= 1.4 for ax in figure.axes)


def test_many_rows_leave_no_empty_band():
    figure = beside_printed([Measured(str(i), 1.0, (1.1, 0.1)) for i in range(24)], x_label="x")

    bottom, top = figure.axes[0].get_ylim()
    assert (bottom, top) == (23.6, -0.6)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1, 3, 30, 300], True), ([1, 2, 3, 50], False), ([0, 0, 1, 1000], False), ([0, 1, 10, 100, 1000], True), ([], False)],
)
def test_an_axis_is_logarithmic_where_values_span_two_decades(values, expected):
    assert style.needs_log(values) is expected


@pytest.mark.parametrize("name", ["m1", "5G-DTAG-WAVELAB"])
def test_the_figure_of_calls_and_drops_has_its_texts_inside(name):
    links = []
    for number in range(5):
        times_s = np.cumsum(60.0 + np.random.default_rng(number).exponential(3000.0, 25))
        ends_s = [*times_s[1:], times_s[-1] + 900.0]
        calls = [Call(float(at), float(end) - 30.0, "dropped") for at, end in zip(times_s, ends_s, strict=True)]
        link = Link(f"{name}-{number}", calls, [])
        link.first_s, link.last_s = float(times_s[0]), calls[-1].end_s
        links.append(link)
    figure = call_drops.figure(Study([], links, [_part("all", links, PAUSE_S, 20, 1)], []))

    assert outside(figure) == []
    assert style.least_width_px(figure) <= style.NARROW_PX
    for ax in figure.axes:
        if ax.get_legend():
            figure.draw(FigureCanvasAgg(figure).get_renderer())
            assert ax.get_legend().get_window_extent().width <= ax.bbox.width
