#!/usr/bin/env bash
# Launch shapes for four queries of the Star Schema Benchmark, to find good defaults: bench/ssb_shapes.sh [SCALE [CB2T [FOLDER]]]
set -uo pipefail
scale="${1:-20}" cb2t="${2:-target/release/cb2t}" folder="${3:-/tmp/ssb-shapes}"
run() {
    echo "== $*"
    "$cb2t" bench ssb --scale "$scale" --folder "$folder" --device cuda --queries "${QUERIES:-Q1.1,Q2.1,Q3.1,Q4.1}" --repeat 20 "$@" 2>&1 | cut -c1-100 | tail -n +2
}
run --placements register,uncompressed
run --keep-codecs
for shape in "128 4" "128 5" "128 8" "256 2" "256 3" "64 12"; do
    read -r threads blocks <<<"$shape"
    run --threads-per-block "$threads" --min-blocks "$blocks"
done
run --threads-per-block 128 --items-per-thread 8 --min-blocks 8
