#!/usr/bin/env bash
# Makes a clean Debian 12 ready: system packages, a Python environment in .venv with torch, the build in
# build/release, and the package installed into .venv. Running it again does only what changed.
#
#   tools/setup.sh [--lint] [--peers] [--packages-only]
#     --lint              also what tools/lint.sh needs
#     --peers             also what tools/bench_peers.sh compares with
#     --packages-only     system packages and nothing else
#     PYTHON=...          the interpreter .venv is made from (default /usr/bin/python3)
#     FASTHOROVOD_TORCH=  what pip installs as torch (default below)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tools/steps.sh

# The one place that pins torch.
torch=${FASTHOROVOD_TORCH:-torch==2.15.*}
python_packages=(numpy pytest 'scikit-build-core>=0.11' matplotlib)
lint_packages=('ruff==0.17.*')
# /usr/bin first: another Python that comes first on PATH may lack the headers the binding needs.
python=${PYTHON:-/usr/bin/python3}
venv=.venv
lint=0
peers=0
packages_only=0

fail() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}

parse_arguments() {
  while [ $# -gt 0 ]; do
    case $1 in
      --lint) lint=1 ;;
      --peers) peers=1 ;;
      --packages-only) packages_only=1 ;;
      -h | --help) sed -n '2,10s/^# \{0,1\}//p' tools/setup.sh && exit 0 ;;
      *) fail "unknown option $1; see tools/setup.sh --help" ;;
    esac
    shift
  done
}

wanted_packages() {
  awk -v lint="$lint" -v peers="$peers" \
    '$1 == "build" || ($1 == "lint" && lint == 1) || ($1 == "peers" && peers == 1) {print $2}' tools/packages.txt
}

# Prints the wanted packages that are not installed.
missing_packages() {
  local wanted installed
  wanted=$(wanted_packages | sort)
  # dpkg-query fails when a package is not known to it, which is an answer here.
  # shellcheck disable=SC2016,SC2086  # dpkg's own format; one word a package
  installed=$({ dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null || true; } |
    sed -n 's/^installed //p' | sort)
  comm -23 <(printf '%s\n' "$wanted") <(printf '%s\n' "$installed")
}

# apt waits for minutes on a network that is not there unless it is told not to.
apt_get() {
  DEBIAN_FRONTEND=noninteractive timeout 900 apt-get -qq -o Acquire::http::Timeout=20 \
    -o Acquire::https::Timeout=20 -o Acquire::Retries=1 -o DPkg::Lock::Timeout=120 "$@"
}

install_packages() {
  # A source that cannot be reached matters only if it holds what is wanted, which the second call finds out.
  apt_get update || true
  apt_get install -y --no-install-recommends "$@"
}

system_packages() {
  local missing
  if ! command -v dpkg-query >/dev/null; then
    printf 'setup: not a Debian system, so these are taken as installed: %s\n' "$(wanted_packages | tr '\n' ' ')"
    return
  fi
  mapfile -t missing < <(missing_packages)
  [ "${#missing[@]}" -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    fail "these packages are missing, and only root can install them; type: sudo apt-get install -y ${missing[*]}"
  fi
  if dpkg-query -W -f '${db:Status-Status}' libboost1.74-dev 2>/dev/null | grep -q '^installed'; then
    printf 'setup: libboost1.74-dev gives way to libboost1.81-dev, they exclude each other\n'
  fi
  try_step "install ${#missing[@]} system packages" install_packages "${missing[@]}"
  if [ "$STEPS_FAILED" -ne 0 ]; then
    fail "apt could not install the packages above; is the network there, and is this Debian 12?"
  fi
}

check_python() {
  command -v "$python" >/dev/null || fail "there is no $python; install Python 3.9 or newer, or set PYTHON"
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' ||
    fail "$python is $("$python" -V 2>&1), but Python 3.9 or newer is needed; set PYTHON to a newer one"
}

pip_install() {
  timeout 1800 "$venv/bin/python" -m pip --disable-pip-version-check --timeout 30 --retries 2 \
    install --progress-bar off "$@"
}

make_venv() {
  "$python" -m venv --clear "$venv"
}

python_environment() {
  local packages=("$torch" "${python_packages[@]}") stamp
  # What only the linter needs is not taken out again by a later run without it.
  if [ "$lint" -eq 1 ] || [ -x "$venv/bin/ruff" ]; then
    packages+=("${lint_packages[@]}")
  fi
  stamp="$("$python" -V 2>&1) $(pwd) ${packages[*]}"
  [ "$(cat "$venv/.fasthorovod-packages" 2>/dev/null)" != "$stamp" ] || return 0
  # A folder that was moved, or an interpreter that was replaced, leaves a .venv that no longer runs.
  if ! "$venv/bin/pip" -V >/dev/null 2>&1 || [ "$("$venv/bin/python" -V)" != "$("$python" -V)" ]; then
    step "make $venv" make_venv
  fi
  try_step "install $torch and others into $venv" pip_install "${packages[@]}"
  [ "$STEPS_FAILED" -eq 0 ] || fail "pip could not install ${packages[*]}; is the package index in reach?"
  printf '%s\n' "$stamp" >"$venv/.fasthorovod-packages"
}

# A hash of everything the build reads, and of the torch it is built for.
build_inputs() {
  {
    cat "$venv/.fasthorovod-packages"
    find CMakeLists.txt CMakePresets.json pyproject.toml core transport compression ops torch_binding tools test bench \
      -type f -not -path '*/__pycache__/*' -not -name '*.sh' -not -path 'test/*.py' -print0 |
      LC_ALL=C sort -z | xargs -0 sha256sum
  } | sha256sum
}

configure() {
  cmake --preset release -DPython_EXECUTABLE="$PWD/$venv/bin/python"
}

build() {
  cmake --build --preset release -j "$(nproc)"
}

# The wheel is packed from the folder that was just built, so nothing is compiled twice.
install_package() {
  SKBUILD_BUILD_DIR=build/release pip_install --no-build-isolation --no-deps --no-index .
}

build_and_install() {
  local stamp_file=build/release/.setup-stamp inputs
  inputs=$(build_inputs)
  [ "$(cat "$stamp_file" 2>/dev/null)" != "$inputs" ] || [ ! -x "$venv/bin/python" ] || return 0
  step "configure" configure
  step "build" build
  step "install fasthorovod into $venv" install_package
  printf '%s\n' "$inputs" >"$stamp_file"
}

parse_arguments "$@"
system_packages
[ "$packages_only" -eq 0 ] || exit 0
check_python
python_environment
build_and_install
printf 'setup: ready after %d s; activate with: source %s/bin/activate\n' "$SECONDS" "$venv"
