#!/usr/bin/env bash
# Compares all-reduces of this engine, torch's gloo, Open MPI and MPICH, on hosts that are network namespaces of this
# machine: in shared memory, over links with and without a limit, and with a cap for each flow. Needs root.
#
#   tools/bench_peers.sh [--quick] [--case NAME]... [--list]
#     --quick             a first look in at most 10 minutes; without it everything takes up to an hour
#     --case NAME         this case alone; --list says which there are
#     --peer NAME, --congestion NAME, --repetitions N, --largest BYTES, --out FOLDER: see --help
#     FASTHOROVOD_BENCH=  measures this fasthorovod-bench, and does not build one
#
# Results: table.md, results.jsonl and plots in build/peers. docs/bench.md says how they come about.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
  printf 'bench_peers: %s\n' "$*" >&2
  exit 1
}

python=.venv/bin/python
case " $* " in
  *' --list '* | *' --help '* | *' -h '*)
    exec "$([ -x $python ] && echo $python || echo python3)" bench/peers/main.py "$@"
    ;;
esac
[ "$(id -u)" -eq 0 ] || fail "network namespaces need root"
if [ -n "${FASTHOROVOD_BENCH:-}" ]; then
  [ -x "$FASTHOROVOD_BENCH" ] || fail "FASTHOROVOD_BENCH: there is no program $FASTHOROVOD_BENCH"
  tools/setup.sh --peers --packages-only
  $python -c 'import torch' || fail "$python has no torch; tools/setup.sh makes it"
else
  tools/setup.sh --peers
  export FASTHOROVOD_BENCH=$PWD/build/release/tools/fasthorovod-bench
fi
bench/peers/mpi_build.sh build/peers
exec $python bench/peers/main.py "$@"
