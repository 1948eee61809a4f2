#!/bin/sh
# Checks and measures decoding on device 0 and writes the record. Needs a GPU, NVRTC 13 and, for the last part, compute-sanitizer.
# Usage: bench/gpu_decode.sh OUTPUT_FOLDER [path of the built example bench_decode]
set -eu
out=$1
bench=${2:-target/release/examples/bench_decode}
"$bench" table --values 536870912 --json "$out/decode.json" | tee "$out/table.txt"
"$bench" encode | tee "$out/encode.txt"
"$bench" check | tee "$out/check.txt"
for tool in memcheck racecheck synccheck initcheck; do
  compute-sanitizer --tool "$tool" "$bench" quick > "$out/$tool.txt" 2>&1 || echo "$tool found errors: $out/$tool.txt"
  tail -1 "$out/$tool.txt"
done
