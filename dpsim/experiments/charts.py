"""Charts as values: tidy table in, chart out; SVG and PDF from the same definition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

_WIDTH, _HEIGHT = 520, 220
_BLUE, _ORANGE = "#2b6cb0", "#dd6b20"


def bars(frame: pd.DataFrame, title: str, caption: str) -> alt.Chart:
    """True and private counts side by side, one pair of bars per label."""
    import altair as alt

    return _sized(alt.Chart(frame, title=_titled(title, caption)).mark_bar().encode(
        x=alt.X("label:N", sort=None, title=None),
        xOffset=alt.XOffset("kind:N", sort=None),
        y=alt.Y("count:Q", title="records"),
        color=_kinds(),
    ))  # fmt: skip


def lines(frame: pd.DataFrame, title: str, caption: str) -> alt.Chart:
    """True and private counts as two lines over the labels, in their order."""
    import altair as alt

    return _sized(alt.Chart(frame, title=_titled(title, caption)).mark_line(point=True).encode(
        x=alt.X("label:N", sort=None, title=None),
        y=alt.Y("count:Q", title="records"),
        color=_kinds(),
    ))  # fmt: skip


def differences(frame: pd.DataFrame, title: str, caption: str) -> alt.Chart:
    """Private minus true counts: what the other two charts are too coarse to show."""
    import altair as alt

    return _sized(alt.Chart(frame, title=_titled(title, caption)).mark_bar(color=_BLUE).encode(
        x=alt.X("label:N", sort=None, title=None),
        y=alt.Y("difference:Q", title="private - true"),
    ))  # fmt: skip


def heat_maps(frame: pd.DataFrame, title: str, caption: str) -> Any:  # noqa: ANN401
    """True and private cells on one scale of color, and their difference on its own."""
    import altair as alt

    def cells(kind: str, color: alt.Color) -> Any:  # noqa: ANN401 - altair composes freely
        chosen = frame[frame["kind"] == kind]
        return alt.Chart(chosen, title=kind, width=220, height=220).mark_rect().encode(
            x=alt.X("column:N", sort=None, title=None),
            y=alt.Y("row:N", sort=None, title=None),
            color=color,
        )  # fmt: skip

    most = float(frame.loc[frame["kind"] != "difference", "count"].max())
    scale = alt.Scale(scheme="blues", domain=[0, most])
    counts = alt.Color("count:Q", title="records", scale=scale)
    signed = alt.Color("count:Q", title="private - true",
                       scale=alt.Scale(scheme="blueorange", domainMid=0))  # fmt: skip
    both = (cells("true", counts) | cells("private", counts)).resolve_scale(color="shared")
    whole = (both | cells("difference", signed)).resolve_scale(color="independent")
    return whole.properties(title=_titled(title, caption))


def svg(chart: Any) -> bytes:  # noqa: ANN401 - any chart of altair
    """The chart as a picture that needs nothing else."""
    import vl_convert

    text: str = vl_convert.vegalite_to_svg(chart.to_dict())
    return text.encode()


def _kinds() -> alt.Color:
    import altair as alt

    scale = alt.Scale(domain=["true", "private"], range=[_ORANGE, _BLUE])
    return alt.Color("kind:N", title=None, scale=scale)


def _titled(title: str, caption: str) -> alt.TitleParams:
    import altair as alt

    return alt.TitleParams(title, subtitle=caption, anchor="start", subtitleColor="#555")


def _sized(chart: alt.Chart) -> alt.Chart:
    return chart.properties(width=_WIDTH, height=_HEIGHT)
