#!/usr/bin/env bash
# Checks everything that needs no run of the code, cheapest first; goes on after a failure and ends with a table.
#
#   tools/lint.sh [--fix] [--all | --base REV]
#     --fix       first put right what can be put right by machine: format, order of imports
#     --base REV  look closely (clang-tidy) at what changed since REV
#                 (default: where this branch left origin/main; everything if it has not left)
#     --all       look closely at everything
#
# Needs tools/setup.sh --lint once. clang 16 compiles what g++ compiles, so that two compilers agree on our code.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tools/steps.sh

base=
all=0
fix=0
build=build/release
jobs=$(nproc)

parse_arguments() {
  while [ $# -gt 0 ]; do
    case $1 in
      --all) all=1 ;;
      --fix) fix=1 ;;
      --base)
        base=${2:?--base needs a revision}
        shift
        ;;
      -h | --help) sed -n '2,11s/^# \{0,1\}//p' tools/lint.sh && exit 0 ;;
      *) printf 'lint: unknown option %s; see tools/lint.sh --help\n' "$1" >&2 && exit 2 ;;
    esac
    shift
  done
}

# Sets base to where this branch left origin/main, or leaves it empty, which means everything.
find_base() {
  [ "$all" -eq 0 ] && [ -z "$base" ] || return 0
  base=$(git merge-base HEAD origin/main 2>/dev/null) || base=
  [ "$base" != "$(git rev-parse HEAD)" ] || base=
}

# Tracked files and new ones that git does not ignore, by pattern; a file deleted but not yet committed is left out.
files() {
  git ls-files --cached --others --exclude-standard -- "$@" | sort -u | while read -r file; do
    [ ! -f "$file" ] || printf '%s\n' "$file"
  done
}

fix_format() {
  files '*.h' '*.cc' '*.cu' '*.cuh' | xargs -r clang-format-16 -i
  .venv/bin/ruff check --fix . && .venv/bin/ruff format .
}

check_format() {
  files '*.h' '*.cc' '*.cu' '*.cuh' | xargs -r clang-format-16 --dry-run -Werror
}

check_shell() {
  { files '*.sh' && files '.ci/*'; } | xargs -r shellcheck -x
}

check_ruff() {
  .venv/bin/ruff check . && .venv/bin/ruff format --check .
}

# The compile database, and the one source that is generated.
prepare() {
  if [ ! -f "$build/CMakeCache.txt" ]; then
    cmake --preset release -DPython_EXECUTABLE="$PWD/.venv/bin/python"
  fi
  cmake --build --preset release --target fasthorovod_build_id
}

check_headers() {
  cmake --build --preset release -j "$jobs" --target all_verify_interface_header_sets
}

scope() {
  .venv/bin/python tools/lint_scope.py "$1" ${base:+--base "$base"} --build "$build"
}

# Runs clang-tidy over the sources named on standard input; how many warnings it kept to itself is of no interest. It
# reads g++'s command lines, with options that clang does not know.
clang_tidy() {
  xargs -r -n 1 -P "$jobs" timeout 600 clang-tidy-16 --quiet -p "$build" \
    --extra-arg=-Wno-unknown-warning-option "$@" \
    2> >(grep -Ev '^[0-9]+ warnings?( and [0-9]+ errors?)? generated' >&2)
}

check_tidy() {
  scope tidy | clang_tidy
}

# Only clang's own warnings; what clang-tidy looked at closely has been through them already.
check_clang() {
  scope syntax | clang_tidy '--checks=-*,clang-diagnostic-*'
}

parse_arguments "$@"
find_base
[ "$fix" -eq 0 ] || try_step "fix" fix_format
try_step "format" check_format
try_step "layering" .venv/bin/python tools/check_layering.py
try_step "shellcheck" check_shell
try_step "ruff" check_ruff
try_step "prepare" prepare
try_step "headers stand alone" check_headers
try_step "clang-tidy ${base:+since ${base:0:12}}" check_tidy
try_step "clang" check_clang
steps_summary "Lint"
