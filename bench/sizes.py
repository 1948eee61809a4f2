#!/usr/bin/env python3
"""Sizes of tables as cb2t beside Parquet with zstd, as a Markdown table, the worst ratio first.

    python3 bench/sizes.py TABLE... [--cb2t target/release/cb2t] [-- --no-header]

What follows `--` goes to `cb2t bench files`, which reads and writes each table.
"""
import argparse
import json
import pathlib
import subprocess
import sys


def sizes(path, arguments, options):
    command = [arguments.cb2t, "bench", "files", path, "--json", "--repeat", "1", *options]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    by_writer = {row["writer"]: row["file_bytes"] for row in report["writers"]}
    return report["rows"], by_writer["cb2t size"], by_writer["cb2t balanced"], by_writer["parquet zstd(3)"]


def main():
    own, options = sys.argv[1:], []
    if "--" in own:
        own, options = own[:own.index("--")], own[own.index("--") + 1:]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+", metavar="TABLE")
    parser.add_argument("--cb2t", default="target/release/cb2t")
    arguments = parser.parse_args(own)
    rows = [(pathlib.Path(path).stem, *sizes(path, arguments, options)) for path in arguments.tables]
    rows.sort(key=lambda row: row[2] / row[4], reverse=True)
    print("| table | rows | size | balanced | Parquet zstd | size / Parquet |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, count, size, balanced, parquet in rows:
        print(f"| {name} | {count:,} | {size:,} | {balanced:,} | {parquet:,} | {size / parquet:.2f} |")


if __name__ == "__main__":
    main()
