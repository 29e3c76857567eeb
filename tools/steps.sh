# shellcheck shell=bash
# Named steps with the seconds each took. Sourced by the scripts beside it, from the root of the tree.
#
#   step "name" command...      runs it with its output in build/log; on failure shows the end of that and exits
#   try_step "name" command...  the same, but remembers the failure and goes on
#   loud_step "name" command... as try_step, with the output shown as it comes
#   steps_summary               prints the table; returns 1 if a step failed
#
# With STEPS_REPEAT=1 the summary begins with the end of what each failed loud step said: whoever keeps only the last
# lines of a long run then still sees why it failed.

STEPS_ROWS=()
STEPS_FAILED=0
STEPS_FAILED_LOGS=()

steps_log_of() {
  mkdir -p build/log
  printf 'build/log/%s.log' "${1//[^a-zA-Z0-9]/-}"
}

# steps_row <name> <status> <seconds>
steps_row() {
  local word=ok
  if [ "$2" -ne 0 ]; then
    word=FAILED
    STEPS_FAILED=1
  fi
  STEPS_ROWS+=("$(printf '%5d s  %-6s  %s' "$3" "$word" "$1")")
  printf '%s\n' "${STEPS_ROWS[-1]}"
}

loud_step() {
  local name=$1 begin=$SECONDS status=0 log
  shift
  printf -- '----------------- %s\n' "$name"
  if [ "${STEPS_REPEAT:-0}" = 1 ]; then
    log=$(steps_log_of "$name")
    "$@" </dev/null 2>&1 | tee "$log" || status=${PIPESTATUS[0]}
    [ "$status" -eq 0 ] || STEPS_FAILED_LOGS+=("$log")
  else
    "$@" </dev/null || status=$?
  fi
  steps_row "$name" "$status" $((SECONDS - begin))
}

try_step() {
  local name=$1 begin=$SECONDS status=0 log
  shift
  log=$(steps_log_of "$name")
  "$@" </dev/null >"$log" 2>&1 || status=$?
  steps_row "$name" "$status" $((SECONDS - begin))
  if [ "$status" -ne 0 ]; then
    tail -n "${STEPS_TAIL:-60}" "$log"
    printf '(all of it: %s)\n' "$log"
  fi
}

step() {
  try_step "$@"
  [ "$STEPS_FAILED" -eq 0 ] || exit 1
}

steps_summary() {
  local log
  for log in "${STEPS_FAILED_LOGS[@]}"; do
    printf '\n================= the end of %s\n' "$log"
    tail -n 60 "$log"
  done
  printf '\n%s\n' "${1:-Steps}"
  printf '%s\n' "${STEPS_ROWS[@]}"
  printf '%5d s  in all\n' "$SECONDS"
  return "$STEPS_FAILED"
}
