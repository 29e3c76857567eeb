#!/usr/bin/env bash
# Sets up, then trains a small network on Fashion-MNIST with four ranks, compares with torch's gloo, ends with a table.
#
#   tools/demo.sh [--quick] [--full] [--ddp]
#     --quick            one epoch and a short comparison, for a first look and for CI
#     --full             trains to the end with every backend of the comparison, not with ours alone
#     --ddp              instead: torchrun, and DistributedDataParallel over this backend and over gloo, in turns
#     FASHION_MNIST=...  the folder of the data set (default: where its Debian package puts it)
#
# Results: results.json, table.md and plot.png in build/demo, with --ddp in build/demo-ddp.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=build/demo
epochs=5
steps=150
accuracy=89
full=0
ddp=0

while [ $# -gt 0 ]; do
  case $1 in
    --quick)
      epochs=1
      steps=40
      accuracy=80
      ;;
    --full) full=1 ;;
    --ddp)
      ddp=1
      out=build/demo-ddp
      ;;
    -h | --help) sed -n '2,10s/^# \{0,1\}//p' tools/demo.sh && exit 0 ;;
    *) printf 'demo: unknown option %s; see tools/demo.sh --help\n' "$1" >&2 && exit 2 ;;
  esac
  shift
done

# The launcher reads what ranks print; the progress line is drawn on the terminal itself.
terminal=()
if [ -t 1 ]; then
  terminal=(--terminal "$(readlink "/proc/$$/fd/1")")
fi

# Runs train.py on four ranks; two virtual hosts, so that half of the ring crosses a host boundary.
on_four_ranks() {
  fasthorovodrun -np 4 -H localhost:4 --virtual-hosts 2 \
    .venv/bin/python tools/demo/train.py "$@" --epochs "$epochs" --steps "$steps" "${terminal[@]}"
}

gloo_on_four_ranks() {
  torchrun --standalone --nproc-per-node 4 tools/demo/train.py "$@" --backend gloo --epochs "$epochs"
}

over_a_slow_link() {
  python tools/demo/slow_link.py --rate 200mbit python tools/demo/train.py "$@" --steps "$steps" "${terminal[@]}"
}

ddp_on_four_ranks() {
  torchrun --standalone --nproc-per-node 4 tools/demo/train.py "$@" --ddp --steps "$steps"
}

# What one step prints goes to the terminal as it comes: progress lines, and the words of what fails.
run() {
  printf -- '----------------- %s\n' "$1"
  shift
  "$@" || {
    printf 'demo: this failed: %s\n' "$*" >&2
    exit 1
  }
}

tools/setup.sh
images=${FASHION_MNIST:-/usr/share/datasets/fashion-mnist}/train-images-idx3-ubyte.gz
if [ ! -f "$images" ]; then
  printf 'demo: %s is missing: type "apt install dataset-fashion-mnist", or set FASHION_MNIST to its folder\n' \
    "$images" >&2
  exit 1
fi
export PATH="$PWD/.venv/bin:$PATH"
mkdir -p "$out"
rm -f "$out"/*
SECONDS=0
if [ "$ddp" -eq 1 ]; then
  run "comparison with gloo under DDP, $steps steps each" \
    ddp_on_four_ranks compare --backend fasthorovod gloo --out "$out/compare.json"
else
  run "training, $epochs epochs" on_four_ranks train --backend fasthorovod --out "$out/train.json"
  if [ "$full" -eq 1 ]; then
    run "the same with gloo" gloo_on_four_ranks train --out "$out/train-gloo.json"
    run "the same with OD-SGD" on_four_ranks train --backend fasthorovod-odsgd --out "$out/train-odsgd.json"
    run "the same with twobit" on_four_ranks train --backend fasthorovod-twobit --out "$out/train-twobit.json"
  fi
  run "comparison with gloo, $steps steps each" \
    on_four_ranks compare --backend fasthorovod gloo --out "$out/compare.json"
  # A process has one engine, so this can not take turns with the others.
  FASTHOROVOD_LANES=2 FASTHOROVOD_AUX=2 run "the same with 2 auxiliaries a rank" \
    on_four_ranks compare --backend fasthorovod --out "$out/auxiliaries.json"
  run "two hosts that 200 Mbit/s join, $steps steps each" \
    over_a_slow_link compare --backend fasthorovod gloo fasthorovod-twobit fasthorovod-odsgd --out "$out/link.json"
fi
run "results" python tools/demo/report.py "$out" --accuracy "$accuracy"
printf 'demo: done in %d s after the set-up\n' "$SECONDS"
