#!/bin/sh
# Instructions per operation, ours and the peers': each operation runs N times and 2 N times under valgrind, and the
# difference counts, so that start, warm-up and end do not. Give scenario names (or parts) to count only those.
#
# Valgrind has no SHA instructions, so SHA-256 runs in software there: counts of whatever hashes are far higher than
# on a processor of today. They are for seeing changes from one commit to the next, not for comparing with the peers.
set -eu
cd "$(dirname "$0")/.."

if ! command -v valgrind >/dev/null; then
    echo "installing valgrind" >&2
    sudo=$(command -v sudo || true)
    $sudo apt-get install --yes --quiet valgrind >&2
fi

cargo build --release --package loopbreaker-bench --bin instructions
program="${CARGO_TARGET_DIR:-target}/release/instructions"
count=${COUNT:-192} # A multiple of every scenario's number of inputs.

instructions() { # scenario contender count
    valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null "$program" "$@" 2>&1 >/dev/null |
        sed -n 's/.*I *refs: *//p' | tr -d ,
}

printf '| %-18s | %-22s | %12s |\n|---|---|--:|\n' scenario who instructions
"$program" list | while read -r scenario contender; do
    wanted=$([ $# -eq 0 ] && echo yes || echo no)
    for part in "$@"; do
        case "$scenario" in *"$part"*) wanted=yes ;; esac
    done
    [ "$wanted" = yes ] || continue
    once=$(instructions "$scenario" "$contender" "$count")
    twice=$(instructions "$scenario" "$contender" "$((2 * count))")
    printf '| %-18s | %-22s | %12d |\n' "$scenario" "$contender" "$(((twice - once) / count))"
done
