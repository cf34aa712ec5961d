"""The roofline: what is drawn stands where the numbers say, and nothing else is drawn."""

from __future__ import annotations

import dataclasses
import json
import math
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest
from tests.analyses import (
    a_chip,
    a_decode_step,
    a_gemm,
    a_hostile_analysis,
    a_kernel,
    a_report,
    an_analysis,
)

from solscope.model.kernel import LaunchPeaks
from solscope.model.report import Device
from solscope.model.verdict import Analysis, KernelVerdict
from solscope.render import figure
from solscope.render.figure.geometry import HEIGHT, WIDTH, spread
from solscope.render.figure.panels import PROFILE, SHEET, panels
from solscope.render.figure.scene import Scene, lay_out
from solscope.render.view.page import page


@pytest.fixture(scope="module")
def scene() -> Scene:
    analysis = a_decode_step()
    (panel,) = panels(analysis, page(analysis))
    return lay_out(panel)


def test_a_marker_stands_at_its_intensity_and_rate(scene: Scene) -> None:
    marker = next(m for m in scene.markers if m.row.name.startswith("nvjet"))
    assert scene.plane.value_at_x(marker.x) == pytest.approx(206.2e9 / 354e6)
    assert scene.plane.value_at_y(marker.y) == pytest.approx(206.2e9 / 240e-6)


def test_the_bandwidth_roof_is_bytes_times_intensity_up_to_the_ridge(scene: Scene) -> None:
    line = next(r for r in scene.lines if r.roof.is_memory and r.roof.kind == SHEET)
    for x, y in zip(line.x, line.y, strict=True):
        assert y == pytest.approx(3.35e12 * x)
    assert line.x[1] == pytest.approx(989.4 / 3.35)


def test_compute_roofs_begin_at_their_own_ridge_point(scene: Scene) -> None:
    line = next(r for r in scene.lines if r.roof.resource == "fp32" and r.roof.kind == SHEET)
    assert line.x[0] == pytest.approx(66.9 / 3.35)
    assert line.y == (66.9e12, 66.9e12)


def test_both_clocks_are_drawn_for_every_resource_in_use(scene: Scene) -> None:
    for kind in (PROFILE, SHEET):
        drawn = {r.resource for r in scene.panel.roofs if r.kind == kind}
        assert drawn == {"dram", "tensor:bf16", "fp32"}


def test_every_roof_is_labelled_with_its_name_and_clock(scene: Scene) -> None:
    texts = [label.source.replace("\n", "") for label in scene.roof_labels]
    texts += [label.text for label in scene.slope_labels]
    for roof in scene.panel.roofs:
        assert any(roof.name in text for text in texts), roof.name
    assert any("1.830 GHz" in text for text in texts)
    assert any("2.619 GHz" in text for text in texts)


def test_an_unmeasured_intensity_is_on_the_strip_and_no_rate_is_below(scene: Scene) -> None:
    places = {m.row.name: m.where for m in scene.markers}
    assert places["topkGatingSoftmax"] == "unmeasured"
    assert places["rotary_embedding_kernel"] == "resident"
    assert "reshape_and_cache_flash_kernel" not in places
    assert any("reshape_and_cache_flash_kernel" in note for note in scene.notes)
    router = next(m for m in scene.markers if m.row.name == "topkGatingSoftmax")
    assert router.x < 0


def test_areas_grow_with_the_share_of_time(scene: Scene) -> None:
    sizes = {m.row.name: m.radius for m in scene.markers}
    assert sizes["nvjet_tst_256x128_64x4_2x1_v_bz_coopA_TNT"] > sizes["act_and_mul_kernel"]


def test_no_two_roof_labels_overlap(scene: Scene) -> None:
    spans = [(b.y - 6.5 * (b.lines + 1), b.y + 6.5 * (b.lines + 1)) for b in scene.roof_labels]
    for (_, low), (high, _) in pairwise(spans):
        assert low <= high + 0.01


@pytest.mark.parametrize("count", [5, 30])
def test_no_two_names_overlap_however_crowded(count: int) -> None:
    kernels = [
        a_kernel(
            f"a_rather_long_kernel_name_{i}",
            us=10 + i,
            bound="dram",
            flop_total=1e9 * (1 + i % 3),
            dram_read=1e8,
            dram_write=1e7,
            rates={"dram": 1e12},
        )
        for i in range(count)
    ]
    analysis = an_analysis(*kernels)
    (panel,) = panels(analysis, page(analysis))
    labels = [label for label in lay_out(panel).labels if not label.is_inside]
    assert labels
    for a, b in combinations(labels, 2):
        if a.align == b.align == "left" and abs(a.y - b.y) < 12:
            assert abs(a.x - b.x) > 5 * min(len(a.text), len(b.text))
    assert all(0 <= label.y <= HEIGHT and label.x <= WIDTH for label in labels)


def test_unlike_clocks_are_never_in_one_chart() -> None:
    slow = a_kernel(
        "slow", us=5, bound="dram", clock=1.1e9, flop_total=1e6, dram_read=1e6, dram_write=1e6
    )
    near = a_kernel(
        "near", us=4, bound="dram", clock=1.70e9, flop_total=1e6, dram_read=1e6, dram_write=1e6
    )
    analysis = an_analysis(a_gemm(), slow, near)
    drawn = panels(analysis, page(analysis))
    assert [[row.name for row, _ in p.members] for p in drawn] == [
        ["nvjet_tst_256x128_64x4_2x1_v_bz_coopA_TNT", "near"],
        ["slow"],
    ]
    assert "1.700 to 1.755 GHz" in drawn[0].subtitle[0]


def test_unlike_cache_modes_are_never_in_one_chart() -> None:
    reports = (a_report(), a_report("b.ncu-rep", session=type(a_report().session)()))
    other = a_kernel(
        "warm", us=5, bound="dram", report=1, flop_total=1e6, dram_read=1e6, dram_write=1e6
    )
    analysis = an_analysis(a_gemm(), other, reports=reports, chips=(a_chip(), a_chip()))
    assert len(panels(analysis, page(analysis))) == 2


def test_a_chip_in_no_table_still_has_the_roofs_of_the_report() -> None:
    kernel = a_kernel("k", us=5, bound="unmeasured")
    analysis = an_analysis(kernel, chips=(None,))
    (panel,) = panels(analysis, page(analysis))
    assert {(r.kind, r.resource) for r in panel.roofs} == {(PROFILE, "dram"), (PROFILE, "fp32")}
    assert "in no ceilings table" in panel.subtitle[0]


def without_roofs(kernel: KernelVerdict) -> Analysis:
    """A kernel of a GPU that nobody named, on a page without peaks."""
    point = dataclasses.replace(kernel.point, profiled=(), datasheet=())
    nameless = Device(name=None, compute_capability=(9, 0))
    totals = dataclasses.replace(kernel.totals, peaks=LaunchPeaks(), device=nameless)
    bare = dataclasses.replace(kernel, point=point, totals=totals)
    return an_analysis(bare, chips=(None,))


def test_points_without_a_roof_are_drawn_and_the_want_is_said() -> None:
    svg = figure.svg(without_roofs(a_gemm()))
    assert float(ElementTree.fromstring(svg).get("height", "0")) > 300
    assert b"No roof is known" in svg


def test_without_a_point_and_a_roof_there_is_no_chart() -> None:
    analysis = without_roofs(a_kernel("k", us=5, bound="unmeasured"))
    assert panels(analysis, page(analysis)) == ()
    svg = figure.svg(analysis).decode()
    assert "no FLOP were counted and no roof is known" in svg
    assert "--chip" in svg


def test_incomplete_is_said_in_the_chart_itself() -> None:
    analysis = an_analysis(a_gemm(), reports=(a_report(complete=False),))
    assert "INCOMPLETE" in json.dumps(figure.spec(analysis))


def test_the_definition_fetches_nothing_and_names_no_one() -> None:
    text = json.dumps(figure.spec(a_decode_step()))
    assert '"url"' not in text
    for secret in ("someone", "hunter2", "node-17"):
        assert secret not in text


def test_the_svg_is_well_formed_whatever_a_kernel_is_called() -> None:
    ElementTree.fromstring(figure.svg(a_hostile_analysis()))


def test_the_png_is_a_png() -> None:
    assert figure.png(an_analysis(a_gemm()), scale=0.5).startswith(b"\x89PNG")


def test_labels_are_moved_apart_but_kept_inside() -> None:
    placed = spread([95.0, 96.0, 97.0], [10.0, 10.0, 10.0], 0.0, 100.0)
    assert placed == [75.0, 85.0, 95.0]
    assert math.isclose(spread([50.0], [10.0], 0.0, 100.0)[0], 50.0)


@pytest.mark.parametrize(
    ("dtypes", "drawn"),
    [(("bf16", "fp8"), "tensor:bf16"), (("nvfp4", "bf16"), "tensor:bf16"), ((None,), None)],
    ids=["the longest's", "one without a ceiling", "none told"],
)
def test_the_tensor_roof_of_unmeasured_work_is_of_the_type_that_its_kernel_names(
    dtypes: tuple[str | None, ...], drawn: str | None
) -> None:
    kernels = [
        a_kernel(f"gemm_{rank}", us=100 - rank, bound="unmeasured", dtype=dtype, flop_total=1e9)
        for rank, dtype in enumerate(dtypes)
    ]
    analysis = an_analysis(*kernels)
    (panel,) = panels(analysis, page(analysis))
    roofs = [r.resource for r in panel.roofs if r.kind == SHEET and r.resource.startswith("tens")]
    assert roofs == ([] if drawn is None else [drawn])
