#!/usr/bin/env python3
"""The Star Schema Benchmark's queries on the CPU: cb2t over its files beside DuckDB over its own tables in memory and over Parquet, on the same rows, in one run.

    pip install duckdb pyarrow
    python3 bench/ssb_peers.py [--scale 1] [--cb2t target/release/cb2t] [--repeat 5] [--json FILE]

Times are milliseconds of processor time, all threads together, as means over the runs after one that is not counted.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import tempfile
import time

import duckdb


def processor_ms():
    times = os.times()
    return (times.user + times.system) * 1e3


def duckdb_rows(connection, queries, repeat):
    for name, sql in queries:
        result = connection.sql(sql).fetchall()
        before, start = processor_ms(), time.perf_counter()
        for _ in range(repeat):
            result = connection.sql(sql).fetchall()
        yield name, (processor_ms() - before) / repeat, (time.perf_counter() - start) / repeat * 1e3, len(result)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", default="1")
    parser.add_argument("--cb2t", default="target/release/cb2t")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = [arguments.cb2t, "bench", "ssb", "--scale", arguments.scale, "--folder", f"{folder}/cb2t", "--device", "cpu",
                 "--repeat", str(arguments.repeat), "--json"]
        ours = json.loads(subprocess.run(bench, check=True, capture_output=True, text=True).stdout)
        queries = [(row["query"], row["sql"]) for row in ours["rows"]]
        subprocess.run([arguments.cb2t, "gen", "ssb", "--scale", arguments.scale, "-o", f"{folder}/parquet", "--format", "parquet"],
                       check=True, capture_output=True)
        measured = {"cb2t": [(row["query"], row["cpu_ms"], row["ms"], row["rows"]) for row in ours["rows"]]}
        for peer, kind in (("duckdb, in memory", "table"), ("duckdb, parquet", "view")):
            with duckdb.connect() as connection:
                for path in sorted(pathlib.Path(f"{folder}/parquet").glob("*.parquet")):
                    connection.execute(f"create {kind} {path.stem} as select * from '{path}'")
                measured[peer] = list(duckdb_rows(connection, queries, arguments.repeat))
    for peer, rows in measured.items():
        assert [row[3] for row in rows] == [row[3] for row in measured["cb2t"]], f"{peer}: another number of rows"
    print(f"{'query':8}" + "".join(f"{peer:>20}" for peer in measured) + "   (ms of processor time)")
    for index, (name, _) in enumerate(queries):
        print(f"{name:8}" + "".join(f"{rows[index][1]:20.1f}" for rows in measured.values()))
    means = {peer: math.exp(sum(math.log(max(row[1], 0.01)) for row in rows) / len(rows)) for peer, rows in measured.items()}
    print(f"{'geomean':8}" + "".join(f"{mean:20.1f}" for mean in means.values()))
    if arguments.json:
        record = {
            "command": f"python3 bench/ssb_peers.py --scale {arguments.scale} --repeat {arguments.repeat}",
            "date": time.strftime("%Y-%m-%d"), "machine": ours["machine"], "versions": {"duckdb": duckdb.__version__},
            "geometric_mean_cpu_ms": means,
            "rows": {peer: [{"query": q, "cpu_ms": c, "wall_ms": w, "rows": n} for q, c, w, n in rows] for peer, rows in measured.items()},
        }
        pathlib.Path(arguments.json).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
