#!/usr/bin/env bash
# What the kernels of Star Schema Benchmark queries read and wait for, by Nsight Compute: bench/ssb_ncu.sh OUT [SCALE [CB2T [FOLDER]]]
#
# OUT gets bytes.csv (BYTES' queries in each of PLACEMENTS: bytes of device memory, a line a kernel) and, for each of QUERIES, QUERY.txt (what limits it) and QUERY.sass.csv (where it waits).
set -uo pipefail
out="${1:?a folder for the results}" scale="${2:-100}" cb2t="${3:-target/release/cb2t}"
folder="${4:-/tmp/ssb$scale}"
mkdir -p "$out"

profile() {
    local query="$1" placement="$2"
    shift 2
    ncu --clock-control none --target-processes all "$@" \
        "$cb2t" bench ssb --scale "$scale" --folder "$folder" --device cuda --repeat 1 --queries "$query" --placements "$placement" 2>>"$out/ncu.log"
}

metrics=gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,lts__t_bytes.sum
for query in ${BYTES-Q1.1 Q2.1 Q3.1 Q4.1}; do
    for placement in ${PLACEMENTS-register shared global-stage pre-decode uncompressed}; do
        profile "$query" "$placement" --metrics "$metrics" --csv --page raw --print-units base |
            grep '^"' | sed "s/^/\"$query\",\"$placement\",/" >>"$out/bytes.csv"
    done
done
for query in ${QUERIES-}; do
    # Of the builds, too; the scan of lineorder is what takes longest.
    profile "$query" register -k pipeline --set detailed --section SourceCounters --section WarpStateStats -f -o "$out/$query" >/dev/null
    ncu --import "$out/$query.ncu-rep" --page details >"$out/$query.txt"
    ncu --import "$out/$query.ncu-rep" --page source --csv --print-units base >"$out/$query.sass.csv"
    rm -f "$out/$query.ncu-rep"
done
