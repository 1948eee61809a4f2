#!/usr/bin/env bash
# Fuzzes each target for some seconds: fuzz/run.sh [SECONDS [TARGET...]]
#
# Needs Rust (stable) and a C++ compiler, nothing else: the flags are those by which cargo-fuzz instruments.
# SANITIZER=address adds AddressSanitizer, which costs about half of the speed.
set -euo pipefail
cd "$(dirname "$0")"

seconds="${1:-30}"
shift || true
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    targets=(open_file check_then_decode round_trip parquet_in csv_in)
fi

host="$(rustc -vV | sed -n 's/^host: //p')"
flags="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
flags+=" -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing"
folder=target
if [ "${SANITIZER:-none}" = address ]; then
    export RUSTC_BOOTSTRAP=1 ASAN_OPTIONS="detect_odr_violation=0:detect_leaks=0"
    flags+=" -Zsanitizer=address"
    folder=target/address
fi
RUSTFLAGS="$flags" cargo build --release --locked --target "$host" --target-dir "$folder" "${targets[@]/#/--bin=}"

for target in "${targets[@]}"; do
    mkdir -p "corpus/$target" "artifacts/$target"
    echo "== $target, $seconds s"
    log="artifacts/$target/log"
    if ! "$folder/$host/release/$target" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix="artifacts/$target/" "corpus/$target" "seeds/$target" >"$log" 2>&1; then
        tail -n 60 "$log"
        echo "fuzz/artifacts/$target holds the input; repeat it with fuzz/$folder/$host/release/$target INPUT" >&2
        exit 1
    fi
    grep -E 'DONE|number_of_executed_units' "$log"
done
