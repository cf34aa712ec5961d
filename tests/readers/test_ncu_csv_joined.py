"""CSV of ncu that went through other hands: pages joined, spreadsheets, collectors of logs."""

from __future__ import annotations

import time

import pytest
from tests import corpus

from solscope.errors import ReportError
from solscope.model.report import Report
from solscope.model.summary import SummaryReport
from solscope.reports import ncu_csv
from solscope.reports.ncu_csv.layout import find_tables

FIXED = '"ID","Process ID","Host Name","Kernel Name","Context","Stream","Device"'
SOL = "GPU Speed Of Light Throughput"


def read(text: str, **options: str) -> Report:
    assert ncu_csv.recognises(text.encode()[:65536], "x.csv")
    return ncu_csv.read("x.csv", text.encode(), "0" * 64, **options)


def raw(metrics: str, units: str, *rows: str) -> str:
    """A raw page; a row is its ID, process and metric cells."""
    head = f'{FIXED},{metrics}\n"","","","","","","",{units}\n'
    return head + "".join(
        f'"{row.split(",")[0]}","{row.split(",")[1]}","h","k(int)","1","7","0",'
        f"{','.join(row.split(',')[2:])}\n"
        for row in rows
    )


def details(*rows: str, host: str = "h", columns: str = '"Metric Unit","Metric Value"') -> str:
    head = f'{FIXED},"Section Name","Metric Name",{columns}\n'
    return head + "".join(f'"0","1","{host}","k(int)","1","7","0",{row}\n' for row in rows)


def codes(report: Report) -> list[str]:
    return [issue.code for issue in report.issues]


def test_each_table_of_a_file_has_its_own_units_and_columns() -> None:
    first = raw('"gpu__time_duration.sum","dram__bytes.sum"', '"ns","byte"', "0,11,10240,4096")
    second = raw('"dram__bytes.sum","gpu__time_duration.sum"', '"Mbyte","us"', "0,12,2.5,3.25")
    between = "==PROF== Disconnected\nnext run\n"
    one, two = (launch.metrics for launch in read(first + between + second).launches)
    assert (one["gpu__time_duration.sum"], one["dram__bytes.sum"]) == (10240, 4096)
    assert (two["gpu__time_duration.sum"], two["dram__bytes.sum"]) == (3250, 2500000)


def test_tables_of_the_details_page_may_differ_in_their_columns() -> None:
    first = details(f'"{SOL}","Duration","us","9.1"')
    second = details(f'"{SOL}","Duration","9.3","us"', columns='"Metric Value","Metric Unit"')
    times = [one.metrics["gpu__time_duration.sum"] for one in read(first + second).launches]
    assert times == [9100, 9300]


def test_another_page_in_the_file_is_named_and_counts_no_launch_twice() -> None:
    report = read(
        details(f'"{SOL}","Duration","us","9.1"')
        + raw('"gpu__time_duration.sum"', '"ns"', "0,1,9104")
    )
    assert [one.metrics["gpu__time_duration.sum"] for one in report.launches] == [9104]
    assert codes(report) == ["table-not-read"]
    assert "line 1 (ncu CSV, details page)" in report.issues[0].what


def test_a_launch_that_stands_in_the_file_twice_is_said() -> None:
    page = raw('"gpu__time_duration.sum"', '"ns"', "0,11,10240", "1,11,10240")
    again = page.splitlines(keepends=True)[2]
    for text in (page + page.partition("\n")[0] + "\n" + again, page + again, page + page):
        assert "repeated-launches" in codes(read(text))
    once = details(f'"{SOL}","Duration","us","9.1"')
    assert codes(read(once + once)) == ["repeated-launches"]
    assert codes(read(page)) == []
    head = '"Kernel Name","gpu__time_duration.sum","sm__cycles_active.sum"\n"","ns","cycle"\n'
    without_ids = head + '"k","10","9"\n' * 2
    report = read(without_ids)
    assert (len(report.launches), codes(report)) == (2, [])


def test_processes_of_one_number_on_two_hosts_stay_apart() -> None:
    rows = f'"{SOL}","Duration","us","9.1"'
    other = details(rows.replace("9.1", "9.3"), host="g").split("\n", 1)[1]
    times = [one.metrics["gpu__time_duration.sum"] for one in read(details(rows) + other).launches]
    assert times == [9100, 9300]


@pytest.mark.parametrize("cell", ["45. Jan", "########", "#N/A", "-", "1048\0576"])
def test_a_text_where_a_number_belongs_is_no_value(cell: str) -> None:
    report = read(raw('"gpu__time_duration.sum","dram__bytes.sum"', '"ns","byte"', f"0,1,7,{cell}"))
    (launch,) = report.launches
    assert launch.metrics.get("dram__bytes.sum") is None
    assert launch.metrics.valueless() == ("dram__bytes.sum",)
    assert codes(report) == ["not-a-number"]
    report = read(details(f'"{SOL}","Duration","us","{cell}"'))
    assert report.launches[0].metrics.get("gpu__time_duration.sum") is None
    assert codes(report) == ["not-a-number"]


def test_a_details_page_without_units_gives_no_scaled_number() -> None:
    text = details(
        f'"{SOL}","Duration","9.1"', f'"{SOL}","DRAM Throughput","45.2"', columns='"Metric Value"'
    )
    report = read(text)
    assert dict(report.launches[0].metrics.items()) == {
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 45.2
    }
    assert report.launches[0].metrics.valueless() == ("gpu__time_duration.sum",)
    assert codes(report) == ["without-unit"]


def test_a_raw_page_without_its_row_of_units_gives_no_scaled_number() -> None:
    names = '"gpu__time_duration.sum","launch__shared_mem_per_block","launch__waves"'
    lines = raw(names, '"","",""', "0,1,10.24,16.38,2").splitlines(keepends=True)
    text = lines[0] + lines[2]
    report = read(text)
    assert dict(report.launches[0].metrics.items()) == {"launch__waves": 2}
    assert codes(report) == ["without-unit"]
    reading = ncu_csv.explain("x.csv", text.encode())
    assert [column.value for column in reading.columns] == [None, None, 2]


def test_an_empty_unit_is_that_of_an_ncu_which_does_not_know_the_metric() -> None:
    # ncu 2024.1.1 prints metrics of a B200's report without units, and unscaled.
    names = '"gpu__time_duration.sum","dram__cycles_elapsed.avg.per_second"'
    (launch,) = read(raw(names, '"",""', "0,1,49952,3989429852.66")).launches
    assert launch.metrics["gpu__time_duration.sum"] == 49952
    (launch,) = read(details(f'"{SOL}","Duration","","49952"')).launches
    assert launch.metrics["gpu__time_duration.sum"] == 49952


def test_two_columns_of_one_name_that_differ_keep_the_first_and_say_so() -> None:
    names = '"gpu__time_duration.sum","gpu__time_duration.sum"'
    agreeing = read(raw(names, '"ns","us"', "0,1,10240,10.24"))
    assert agreeing.launches[0].metrics["gpu__time_duration.sum"] == 10240
    assert codes(agreeing) == []
    differing = read(raw(names, '"ns","us"', "0,1,10240,11.5"))
    assert differing.launches[0].metrics["gpu__time_duration.sum"] == 10240
    assert codes(differing) == ["differing-values"]


@pytest.mark.parametrize(
    "mark", ["[rank0]: ", "2026-11-30T12:00:0{n}.123Z stdout F ", "[1,{n}]<stdout>:", "ncu | "]
)
def test_what_a_collector_of_logs_puts_before_each_line_is_cut_off(mark: str) -> None:
    pages = (raw('"gpu__time_duration.sum"', '"us"', "0,1,10.24", "1,1,10.24"),)
    pages += (details(f'"{SOL}","Duration","us","10.24"'),)
    for page in pages:
        lines = ["server is up", *page.splitlines(), "==PROF== Disconnected"]
        text = "".join(f"{mark.format(n=n)}{line}\n" for n, line in enumerate(lines))
        report = read(text)
        assert {one.metrics["gpu__time_duration.sum"] for one in report.launches} == {10240}
        assert "line-prefix" in codes(report)


def test_cells_that_moved_because_quotes_were_cut_off_are_never_read() -> None:
    head = '"ID","Process ID","Kernel Name","Block Size","Grid Size","gpu__time_duration.sum"'
    fixed = '"0","11","{}","(256, 1, 1)","(8, 1, 1)"'
    page = f'{head}\n"","","","","","us"\n{fixed},"10.24"\n'
    rows = ',"Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type"'
    detail = f'{head}{rows},"Rule Description","A"\n{fixed},"","{SOL}","Duration","us","9.1",""\n'
    rows = ',"Invocations","Metric Name","Minimum","Maximum","Average"'
    summary = f'{head}{rows}\n{fixed},"","5","sm__cycles_active.sum","1","3","2"\n'
    for text in (page, detail, summary):
        for name in ("gemm<float>(float *, int)", "gemm"):
            read(text.format(name))
            with pytest.raises(ReportError, match="without the quotes"):
                read(text.format(name).replace('"', ""))
    trailing = "".join(f"{line},,\n" for line in page.format("k").splitlines())
    assert read(trailing).launches[0].metrics["gpu__time_duration.sum"] == 10240


def test_identifiers_that_a_data_frame_made_fractions_stay_what_they_were() -> None:
    page = raw('"gpu__time_duration.sum"', '"ns"', "0.0,46976.0,10")
    (launch,) = read(page.replace('"1","7","0"', '"1.0","7.0","0.0"')).launches
    assert (launch.process_id, launch.context_id, launch.stream_id) == (46976, 1, 7)
    assert launch.device.ordinal == 0


def test_a_row_whose_identifier_was_mangled_is_not_dropped_silently() -> None:
    report = read(raw('"gpu__time_duration.sum"', '"ns"', "0,11,10", "1,4.7E+04,10", ",11,10"))
    assert len(report.launches) == 1
    assert codes(report) == ["rows-without-id", "few-digits"]
    assert report.issues[0].what.startswith("2 rows have no number for ID or process")
    mangled = details(f'"{SOL}","Duration","us","9.1"').replace('"0","1"', '"0","1.2E+05"')
    assert codes(read(mangled)) == ["rows-without-id", "few-digits"]


def test_a_thousand_tables_and_a_word_of_a_header_in_each_row_take_no_square_time() -> None:
    names = '"gpu__time_duration.sum"'
    page = raw(names, '"ns"', *(f"{n},11,10240" for n in range(40)))
    text = page.replace('"k(int)"', '"checkAddress(int)"') * 1000
    begun = time.process_time()
    tables = find_tables(text)
    assert time.process_time() - begun < 5  # copying or searching the rest for each takes minutes
    assert [len(tables), tables[-1].line] == [1000, 999 * 42 + 1]


def test_colours_of_a_terminal_are_no_part_of_the_table() -> None:
    page = raw('"gpu__time_duration.sum"', '"us"', "0,1,10.24")
    report = read("".join(f"\x1b[32m{line}\x1b[0m\n" for line in page.splitlines()))
    assert report.launches[0].metrics["gpu__time_duration.sum"] == 10240


def test_a_column_of_somebodys_own_is_no_metric() -> None:
    page = raw('"gpu__time_duration.sum"', '"us"', "0,1,10.24")
    report = read(
        "".join(f'"{"run" if n == 0 else "A"}",{x}\n' for n, x in enumerate(page.split("\n")[:-1]))
    )
    assert dict(report.launches[0].metrics.items()) == {"gpu__time_duration.sum": 10240}
    assert codes(report) == ["foreign-columns"]


def test_titles_and_switches_of_a_terminal_are_no_part_of_it() -> None:
    page = raw('"gpu__time_duration.sum"', '"us"', "0,1,10.24")
    report = read(f"\x1b[?2004l\x1b]0;user: ncu\x07{page}\x1b[?2004h")
    assert report.launches[0].metrics["gpu__time_duration.sum"] == 10240
    assert codes(report) == []


def test_a_file_of_two_encodings_keeps_the_names_of_both() -> None:
    page = raw('"gpu__time_duration.sum"', '"us"', "0,1,10.24").replace("k(int)", "käse(int)")
    data = page.encode() + page.encode("latin-1")
    report = ncu_csv.read("x.csv", data, "0" * 64)
    assert [one.name_full for one in report.launches] == ["käse(int)", "käse(int)"]
    assert ncu_csv.explain("x.csv", data).encoding == "UTF-8 and Latin-1"


def test_a_file_cut_in_its_units_row_says_that_it_is_cut() -> None:
    report = read(raw('"gpu__time_duration.sum","dram__bytes.sum"', '"nsecond","byte"')[:-8])
    assert not report.complete
    assert report.launches == ()
    assert codes(report) == ["truncated"]


def test_summaries_of_several_ranges_stay_apart_and_bear_their_names() -> None:
    head = '"NVTX Range","Invocations","Metric Name","Metric Unit","Minimum","Maximum","Average"\n'
    body = (
        '"step","5","gpu__time_duration.sum","us","1.5","2.5","2.0"\n'
        '"warm-up","5","gpu__time_duration.sum","us","4.5","5.5","5.0"\n'
    )
    report = read(head + body)
    assert isinstance(report, SummaryReport)
    assert [(one.name, len(one.metrics)) for one in report.summaries] == [
        ("step", 1),
        ("warm-up", 1),
    ]
    gpus = '"Device","Invocations","Metric Name","Minimum","Maximum","Average"\n'
    report = read(gpus + '"0","5","gpu__time_duration.sum","1.5","2.5","2.0"\n')
    assert isinstance(report, SummaryReport)
    (one,) = report.summaries
    assert one.name == "(all kernels)"
    assert one.metrics[0].average is None  # 2.0 of what?
    assert codes(report) == ["without-unit"]


def test_the_row_number_of_a_data_frame_makes_no_launch() -> None:
    page = details(f'"{SOL}","Duration","us","9.1"', f'"{SOL}","Elapsed Cycles","cycle","18000"')
    head, *rows = page.splitlines()
    framed = f",{head}\n" + "".join(f"{n},{row}\n" for n, row in enumerate(rows))
    (launch,) = read(framed).launches
    assert dict(launch.metrics.items()) == {
        "gpu__time_duration.sum": 9100,
        "gpc__cycles_elapsed.max": 18000,
    }


@pytest.mark.parametrize("null", ["nan", "NaN", "None", "null", "<NA>"])
def test_what_data_frames_write_in_an_empty_cell_is_no_unit(null: str) -> None:
    page = raw(
        '"gpu__time_duration.sum","launch__waves_per_multiprocessor"', '"us",""', "0,1,9.1,2"
    )
    (launch,) = read(page.replace('""', f'"{null}"')).launches
    assert dict(launch.metrics.items()) == {
        "gpu__time_duration.sum": 9100,
        "launch__waves_per_multiprocessor": 2,
    }
    rows = (f'"{SOL}","Duration","us","9.1"', f'"Occupancy","Block Limit SM","{null}","32"')
    (launch,) = read(details(*rows, f'"{SOL}","{null}","{null}","{null}"')).launches
    assert list(launch.metrics) == ["gpu__time_duration.sum", "launch__occupancy_limit_blocks"]


def test_units_are_found_wherever_sorting_has_put_their_row() -> None:
    page = raw('"gpu__time_duration.sum"', '"us"', "0,1,9.1", "1,1,8.5", "2,1,7.5")
    head, units, *rows = page.splitlines(keepends=True)
    blank = ",,,,,,,\n"
    for lines in (
        [head, *rows, units],
        [head, rows[0], units, *rows[1:]],
        [head, blank, units, *rows],
        [head, units, *rows, blank, units],
    ):
        times = [one.metrics["gpu__time_duration.sum"] for one in read("".join(lines)).launches]
        assert times == [9100, 8500, 7500]
    with pytest.raises(ReportError, match="two rows of units, and they differ"):
        read(page + units.replace("us", "ms"))


def test_lines_of_several_ranks_find_the_units_of_their_own_page() -> None:
    names = '"gpu__time_duration.sum"'
    one = raw(names, '"us"', "0,11,9.1", "1,11,8.5").splitlines()
    two = raw(names, '"ms"', "0,12,4.5", "1,12,4.25").splitlines()
    mixed = [line for pair in zip(one, two, strict=True) for line in pair]
    for marks in (
        ("0: ", "1: "),
        ("[pod/a/ncu] ", "[pod/b/ncu] "),
        ("12:00:01.5 [r0] ", "12:00:02.25 [r1] "),
    ):
        text = "".join(f"{marks[n % 2]}{line}\n" for n, line in enumerate(mixed))
        found = [(x.process_id, x.metrics["gpu__time_duration.sum"]) for x in read(text).launches]
        assert found == [(11, 9100), (11, 8500), (12, 4500000), (12, 4250000)]
    with pytest.raises(ReportError, match="two rows of units"):
        read("".join(f"{line}\n" for line in mixed))
    late = [*one[:3], *two[:2], one[3], *two[2:]]
    with pytest.raises(ReportError, match="rows of process 11 go on under the header of another"):
        read("".join(f"{line}\n" for line in late))


def test_pages_of_one_process_in_a_row_keep_their_own_units() -> None:
    names = '"gpu__time_duration.sum"'
    text = raw(names, '"us"', "0,11,9.1", "1,11,8.5") + raw(names, '"ms"', "2,11,4.5")
    times = [one.metrics["gpu__time_duration.sum"] for one in read(text).launches]
    assert times == [9100, 8500, 4500000]


def test_numbers_that_a_spreadsheet_left_three_digits_are_said() -> None:
    page = raw('"gpu__time_duration.sum"', '"ns"', "0,1,1.23E+05")
    assert codes(read(page)) == ["few-digits"]
    assert codes(read(details(f'"{SOL}","Duration","ns","1.23E+05"'))) == ["few-digits"]
    exact = page.replace("1.23E+05", "1.2345678E+05")
    assert codes(read(exact)) == []


@pytest.mark.corpus
def test_no_page_that_ncu_wrote_looks_touched_by_other_hands() -> None:
    touched = {"without-unit", "not-a-number", "repeated-launches", "table-not-read"}
    touched |= {"line-prefix", "few-digits"}
    for kind in ("ncu-csv", "cli-variant"):
        for record in corpus.records(kind):
            if ".csv" not in record["file"]:
                continue
            data = corpus.raw(corpus.require(corpus.CORPUS / record["file"]))
            locale = {"locale": "de_DE"} if "de_DE" in record["file"] else {}
            report = ncu_csv.read("x.csv", data, "0" * 64, **locale)
            assert not touched & set(codes(report)), record["file"]
