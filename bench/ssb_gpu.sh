#!/usr/bin/env bash
# The Star Schema Benchmark on CUDA devices: results checked against the CPU, then timed.
#
#   bench/ssb_gpu.sh OUT [CB2T [STEP...]]
#
# OUT is a folder for the records. STEP: check (scale 1, every placement and some launch shapes), matrix (the same of each of CODECS as they are in the file),
# scale100, placements, flbp and size (scale 100, also with other codecs), devices2 (one device and two).
set -uo pipefail
out="${1:?a folder for the records}"
cb2t="${2:-target/release/cb2t}"
shift 2 || shift $#
steps=("$@")
[ ${#steps[@]} -eq 0 ] && steps=(check scale100)
mkdir -p "$out"

ssb() {
    local name="$1"
    shift
    local start=$SECONDS
    "$cb2t" bench ssb --json "$@" >"$out/$name.json" 2>"$out/$name.log"
    local rc=$?
    echo "$name: exit code $rc, $((SECONDS - start)) s"
    tail -n 3 "$out/$name.log"
    return $rc
}

for step in "${steps[@]}"; do
    case "$step" in
    check)
        ssb check --scale 1 --device cuda --placements register,shared,global-stage,pre-decode,uncompressed --repeat 5 || exit 1
        ssb check-256 --scale 1 --device cuda --placements register --threads-per-block 256 --min-blocks 2 --repeat 5 || exit 1
        ssb check-block --scale 1 --device cuda --placements register,shared --threads-per-block 128 --items-per-thread 8 --min-blocks 4 --repeat 5 || exit 1
        ;;
    matrix)
        for codec in ${CODECS-plain flbp rfor auto}; do
            for shape in "" "--threads-per-block 256 --min-blocks 2" "--threads-per-block 128 --items-per-thread 8 --min-blocks 4"; do
                # shellcheck disable=SC2086 # options are words
                ssb "matrix-$codec$(tr -cd '0-9 ' <<<"$shape" | tr -s ' ' '-')" --scale 1 --codec "$codec" --keep-codecs --device cuda \
                    --placements register,shared,global-stage,pre-decode,uncompressed --repeat 1 $shape || exit 1
            done
        done
        ;;
    scale100) ssb scale100 --scale 100 --folder /tmp/ssb100 --device cuda --placements register,uncompressed --repeat 20 || exit 1 ;;
    placements) ssb placements --scale 100 --folder /tmp/ssb100 --device cuda --placements shared,global-stage,pre-decode --repeat 10 || exit 1 ;;
    flbp) ssb flbp --scale 100 --codec flbp --device cuda --placements register --repeat 20 || exit 1 ;;
    size) ssb size --scale 100 --optimize size --device cuda --placements register --repeat 20 || exit 1 ;;
    devices2)
        ssb devices2-check --scale 1 --device cuda:0,1 --placements register,shared,global-stage,pre-decode,uncompressed --repeat 3 || exit 1
        ssb devices1 --scale 100 --folder /tmp/ssb100 --device cuda:0 --placements register --repeat 20 || exit 1
        ssb devices2 --scale 100 --folder /tmp/ssb100 --device cuda:0,1 --placements register --repeat 20 || exit 1
        ;;
    *) echo "no such step: $step" >&2; exit 2 ;;
    esac
done
