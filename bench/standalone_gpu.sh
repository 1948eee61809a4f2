#!/usr/bin/env bash
# Compiles the reader in CUDA C++ with nvcc and compares its sums with those of `cb2t query` on the CPU: bench/standalone_gpu.sh [CB2T]
set -euo pipefail
cb2t="${1:-target/release/cb2t}"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
nvcc -std=c++17 -O3 -arch=native -o "$folder/sum_column" gpu-decode/examples/standalone/sum_column.cu
for codec in plain flbp rfor dfor dict auto; do
    "$cb2t" gen ssb --scale 0.2 --tables lineorder --codec "$codec" -o "$folder/$codec" >/dev/null
    file="$folder/$codec/lineorder.cb2t"
    number=0
    for column in lo_orderkey lo_linenumber lo_custkey lo_partkey lo_suppkey lo_orderdate; do
        expected=$("$cb2t" query "SELECT sum($column) FROM lineorder" "lineorder=$file" --csv --device cpu 2>/dev/null | tail -n 1)
        found=$("$folder/sum_column" "$file" "$number" | sed 's/.*sum //')
        [ "$found" = "$expected" ] || { echo "$codec, $column: $found, not $expected" >&2; exit 1; }
        number=$((number + 1))
    done
    echo "$codec: six columns agree"
done
