#!/usr/bin/env bash
# Sets up and runs every test: C++ with ctest, Python with pytest.
#
#   tools/test.sh [--asan] [--tsan] [-- arguments of ctest...]
#     --asan, --tsan    instead build and run the C++ tests under these sanitizers (they need no torch)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tools/steps.sh

presets=()
while [ $# -gt 0 ]; do
  case $1 in
    --asan | --tsan) presets+=("${1#--}") ;;
    --) shift && break ;;
    -h | --help) sed -n '2,5s/^# \{0,1\}//p' tools/test.sh && exit 0 ;;
    *) printf 'test: unknown option %s; see tools/test.sh --help\n' "$1" >&2 && exit 2 ;;
  esac
  shift
done

# A bound over all cases of one run; each case has its own in the build.
run_ctest() {
  timeout 1500 ctest --preset "$1" --parallel 2 "${@:2}"
}

# Each connection to torch's store asks the name server who is there. Where it does not answer, or loses a question,
# that takes five seconds or ten; whoever asks is content without an answer, so one second is enough.
run_pytest() {
  RES_OPTIONS=timeout:1 PATH="$PWD/.venv/bin:$PATH" timeout 1500 .venv/bin/python -m pytest \
    test/torch_binding test/tools test/netlab test/faults
}

sanitized() {
  step "configure $1" cmake --preset "$1"
  step "build $1" cmake --build --preset "$1" -j "$(nproc)"
  loud_step "ctest $1" run_ctest "$@"
}

if [ "${#presets[@]}" -gt 0 ]; then
  for preset in "${presets[@]}"; do
    sanitized "$preset" "$@"
  done
else
  loud_step "set-up" tools/setup.sh
  [ "$STEPS_FAILED" -eq 0 ] || exit 1
  loud_step "ctest" run_ctest release "$@"
  loud_step "pytest" run_pytest
fi
steps_summary "Tests"
