#!/usr/bin/env python3
"""Size, writing and reading of whole tables: cb2t beside Parquet, Vortex and DuckDB, on the same rows, one after the other.

    pip install duckdb pyarrow vortex-data
    python3 bench/peers.py TABLE.parquet... [--cb2t target/release/cb2t] [--repeat 3] [--json FILE] [--svg FILE]

cb2t measures itself (`cb2t bench files`: its writers and Rust's Parquet, from Arrow in memory and from a file in the page cache to Arrow). The peers run here through their
Python packages: Vortex writes from and reads to Arrow, batches that are dropped one after the other as cb2t's and Parquet's are; DuckDB writes its own file from Arrow and reads to an Arrow
table. Medians after one run that is not counted. All use all cores.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import vortex
import vortex.io


def median(repeat, work):
    """Seconds of the median run of `work`, and what the last one returned."""
    seconds, result = [], work()
    for _ in range(repeat):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), result


def measure(writer, table, folder, write, read, repeat):
    path = os.path.join(folder, "peer")

    def written():
        pathlib.Path(path).unlink(missing_ok=True)
        write(path)

    write_seconds, _ = median(repeat, written)
    read_seconds, rows = median(repeat, lambda: read(path))
    assert rows == table.num_rows, f"{writer}: {rows} rows came back of {table.num_rows}"
    return {
        "writer": writer,
        "file_bytes": os.path.getsize(path),
        "write_seconds": write_seconds,
        "read_seconds": read_seconds,
    }


def vortex_writer(options, table):
    return lambda path: options.write(vortex.array(table), path)


def read_vortex(path):
    return sum(batch.num_rows for batch in vortex.open(path).to_arrow())


def write_duckdb(table):
    def write(path):
        with duckdb.connect(path) as database:
            database.register("rows_in", table)
            database.execute("create table rows_out as select * from rows_in")
            database.execute("checkpoint")

    return write


def read_duckdb(path):
    with duckdb.connect(path, read_only=True) as database:
        return database.sql("select * from rows_out").to_arrow_table().num_rows


def peers(table, folder, repeat):
    options = vortex.io.VortexWriteOptions
    yield measure("vortex default", table, folder, vortex_writer(options.default(), table), read_vortex, repeat)
    yield measure("vortex compact", table, folder, vortex_writer(options.compact(), table), read_vortex, repeat)
    yield measure("duckdb", table, folder, write_duckdb(table), read_duckdb, repeat)


def table_report(path, arguments):
    command = [arguments.cb2t, "bench", "files", path, "--json", "--repeat", str(arguments.repeat)]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    # Views, which some of the peers do not take, are plain strings here.
    table = pq.read_table(path)
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    table = table.cast(pa.schema([field.with_type(plain.get(field.type, field.type)) for field in table.schema]))
    with tempfile.TemporaryDirectory() as folder:
        report["writers"] += list(peers(table, folder, arguments.repeat))
    return report


def print_report(report):
    print(f"\n{report['file']}: {report['rows']:,} rows of {report['columns']} columns; medians, {report['machine']['cpu']}")
    print(f"{'writer':16} {'MB':>9} {'write s':>9} {'M rows/s':>9} {'read s':>9} {'M rows/s':>9}")
    for row in report["writers"]:
        rates = [report["rows"] / row[key] / 1e6 for key in ("write_seconds", "read_seconds")]
        print(f"{row['writer']:16} {row['file_bytes'] / 1e6:9.2f} {row['write_seconds']:9.3f} {rates[0]:9.2f} "
              f"{row['read_seconds']:9.3f} {rates[1]:9.2f}")


WIDTH, HEIGHT, MARGIN = 560, 320, 56


def label_places(points):
    """For each (text, x, y) where its label begins: beside the point, moved up or down until it covers no other label and no point."""
    boxes = [(x - 5, y - 5, x + 5, y + 5) for _, x, y in points]
    places = []
    for text, x, y in points:
        length = 6.4 * len(text)
        sides = (x + 8, x - 8 - length) if x + 8 + length < WIDTH else (x - 8 - length,)
        candidates = [(left, y + 4 + step) for step in sorted(range(-96, 97, 6), key=abs) for left in sides]

        def is_free(place):
            left, down = place
            return all(left > box[2] or left + length < box[0] or down - 11 > box[3] or down + 2 < box[1] for box in boxes)

        left, down = next(filter(is_free, candidates), candidates[0])
        boxes.append((left, down - 11, left + length, down + 2))
        places.append((left, down, left + length))
    return places


def svg(reports):
    """Size against reading speed: one panel a table, one point a writer; down and right is better."""
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT * len(reports)}" '
             'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>']
    for index, report in enumerate(reports):
        rows = report["writers"]
        rates = [report["rows"] / row["read_seconds"] / 1e6 for row in rows]
        sizes = [row["file_bytes"] / 1e6 for row in rows]
        fast, large = max(rates) * 1.05, max(sizes) * 1.1
        top, bottom = index * HEIGHT, index * HEIGHT + HEIGHT - 36
        parts.append(f'<text x="{MARGIN}" y="{top + 20}" font-size="13">{pathlib.Path(report["file"]).stem}: {report["rows"]:,} rows</text>'
                     f'<path d="M{MARGIN} {top + 30}V{bottom}H{WIDTH - 12}" fill="none" stroke="black"/>'
                     f'<text x="{WIDTH - 12}" y="{bottom + 28}" text-anchor="end">read, M rows/s</text>'
                     f'<text x="14" y="{top + 30}" text-anchor="end" transform="rotate(-90 14 {top + 30})">file, MB</text>')
        for part in (0, 0.5, 1):
            x, y = MARGIN + part * (WIDTH - MARGIN - 12), bottom - part * (HEIGHT - 66)
            parts.append(f'<text x="{x:.0f}" y="{bottom + 14}" text-anchor="middle">{part * fast:.3g}</text>'
                         f'<text x="{MARGIN - 6}" y="{y + 4:.0f}" text-anchor="end">{part * large:.3g}</text>')
        points = [(row["writer"], MARGIN + rate / fast * (WIDTH - MARGIN - 12), bottom - size / large * (HEIGHT - 66))
                  for row, rate, size in zip(rows, rates, sizes)]
        for (writer, x, y), (left, down, right) in zip(points, label_places(points)):
            color = "#c0392b" if writer.startswith("cb2t") else "#2c3e50"
            near = left - 2 if left > x else right + 2
            parts.append(f'<path d="M{x:.1f} {y:.1f}L{near:.1f} {down - 4:.1f}" stroke="{color}" stroke-width="0.5"/>'
                         f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"/>'
                         f'<text x="{left:.1f}" y="{down:.1f}" fill="{color}">{writer}</text>')
    return "\n".join(parts + ["</svg>\n"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+", metavar="TABLE.parquet")
    parser.add_argument("--cb2t", default="target/release/cb2t")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--svg", metavar="FILE")
    arguments = parser.parse_args()
    reports = []
    for path in arguments.tables:
        reports.append(table_report(path, arguments))
        print_report(reports[-1])
    record = {
        "command": f"python3 bench/peers.py {' '.join(pathlib.Path(path).name for path in arguments.tables)} --repeat {arguments.repeat}",
        "date": time.strftime("%Y-%m-%d"),
        "versions": {"vortex": vortex.__version__, "duckdb": duckdb.__version__, "pyarrow": pa.__version__},
        "tables": [{**report, "file": pathlib.Path(report["file"]).name} for report in reports],
    }
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(record, indent=1) + "\n")
    if arguments.svg:
        pathlib.Path(arguments.svg).write_text(svg(reports))


if __name__ == "__main__":
    main()
