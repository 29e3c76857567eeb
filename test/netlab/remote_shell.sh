#!/bin/sh
# What mpirun takes for ssh: the "host" is an address of a network namespace on this machine.
#
#   remote_shell.sh [ssh's options] ADDRESS COMMAND...
#
# NETLAB_HOSTS lists "ADDRESS=PROCESS", the process that holds the namespace. Each host gets a name of its own, by
# which MPI tells hosts apart.
set -eu
while [ "${1#-}" != "$1" ]; do
  case $1 in
    -l | -p | -o) shift 2 ;;
    *) shift ;;
  esac
done
address=$1
shift
holder=
for entry in $NETLAB_HOSTS; do
  [ "${entry%%=*}" != "$address" ] || holder=${entry#*=}
done
if [ -z "$holder" ]; then
  printf 'remote_shell: %s is none of %s\n' "$address" "$NETLAB_HOSTS" >&2
  exit 1
fi
exec nsenter --target "$holder" --net unshare --uts sh -c "hostname host${address##*.}; $*"
