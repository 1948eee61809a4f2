#!/usr/bin/env python3
"""1,000 random rows of one column out of 6.3 million, files in the page cache: Vortex and Lance through their Python packages, Parquet by pyarrow. cb2t's own figure for the same
rows is `cargo bench -p bench --bench files -- "take 1000"`.

    pip install pyarrow numpy vortex-data pylance
    python3 bench/take_peers.py [--repeat 50] [--json FILE]

Unsigned integers of 20 bits, uniform. A table is opened once; a run takes the rows, as they come, to Arrow. Medians, milliseconds.
"""
import argparse
import importlib.metadata
import json
import os
import statistics
import tempfile
import time

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import vortex
import vortex.io

ROWS = 12 * 524_288


def median_ms(repeat, work):
    work()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=50)
    parser.add_argument("--json")
    options = parser.parse_args()
    random = np.random.default_rng(1)
    values = random.integers(0, 1 << 20, ROWS, dtype=np.uint32)
    rows = random.integers(0, ROWS, 1000, dtype=np.uint64)
    expected = values[rows]
    # Vortex takes rows in ascending order.
    ascending = np.unique(rows)
    table = pa.table({"value": values})
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tall.vortex")
        vortex.io.write(vortex.array(table), path)
        file = vortex.open(path)
        indices = vortex.array(pa.array(ascending))
        take = lambda: file.scan(indices=indices).read_all().to_arrow_table()
        assert np.array_equal(take().column("value").to_numpy(), values[ascending])
        found["vortex"] = median_ms(options.repeat, take)

        path = os.path.join(folder, "tall.lance")
        lance.write_dataset(table, path)
        dataset = lance.dataset(path)
        take = lambda: dataset.take(rows.tolist(), columns=["value"])
        assert np.array_equal(take().column("value").to_numpy(), expected)
        found["lance"] = median_ms(options.repeat, take)

        path = os.path.join(folder, "tall.parquet")
        pq.write_table(table, path, compression="zstd")
        indices = pa.array(rows)
        take = lambda: pq.read_table(path, columns=["value"]).take(indices)
        assert np.array_equal(take().column("value").to_numpy(), expected)
        found["parquet, whole column"] = median_ms(5, take)
    for peer, milliseconds in found.items():
        print(f"{peer:24} {milliseconds:8.2f} ms")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as output:
            versions = {name: importlib.metadata.version(name) for name in ("vortex-data", "pylance", "pyarrow")}
            json.dump({"rows": ROWS, "taken": 1000, "versions": versions, "milliseconds": found}, output, indent=1)


if __name__ == "__main__":
    main()
