#!/usr/bin/env bash
# Builds bench/peers/mpi_rank.cc with Open MPI and with MPICH, where a source is newer than the program.
#
#   mpi_build.sh FOLDER      the programs are FOLDER/mpi_rank.openmpi and FOLDER/mpi_rank.mpich
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=${1:?mpi_build.sh FOLDER}
sources=(
  bench/peers/mpi_rank.cc
  tools/fasthorovod-bench/{back_to_back,pattern,processor_time,summary}.cc
  core/{data_type,reduction,result}.cc
)

mkdir -p "$folder"
for mpi in openmpi mpich; do
  program=$folder/mpi_rank.$mpi
  # Headers of the build are not followed, so a change of one of these folders counts as well.
  if [ -x "$program" ] && [ -z "$(find "${sources[@]}" tools/fasthorovod-bench/*.h core/*.h -newer "$program")" ]; then
    continue
  fi
  command -v "mpicxx.$mpi" >/dev/null || {
    printf 'mpi_build: mpicxx.%s is missing; tools/setup.sh --peers installs it\n' "$mpi" >&2
    exit 1
  }
  # MPI's own C++ interface is no longer part of the standard.
  "mpicxx.$mpi" -std=c++20 -O2 -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX -I. "${sources[@]}" -o "$program.new" -lfmt
  mv "$program.new" "$program"
done
