#!/bin/sh
# Check that includes only go down the floors of doc/design.md, and that each library has one user.
# Prints TAP; part of `make check`, and can be run by hand.
cd "${srcdir:-$(dirname "$0")/..}" || exit 99
. scripts/tap.sh

sources=$(find src kernels tests -name '*.[ch]' -o -name '*.cu' 2> /dev/null | LC_ALL=C sort)

# Every include, as: file, floor of the file, header, floor of the header.  Kernel headers are named
# without a folder.  The floor is "-" for a system header and config.h.
# shellcheck disable=SC2086
includes=$(awk '
  function floor(path, parts) {
    split(path, parts, "/")
    return parts[1] == "src" ? parts[2] : parts[1]
  }
  /^[ \t]*#[ \t]*include/ {
    own = $0 ~ /"/
    header = $0
    sub(/^[^"<]*["<]/, "", header)
    sub(/[">].*/, "", header)
    to = !own || header == "config.h" ? "-" : header ~ /\// ? floor("src/" header) : "kernels"
    print FILENAME, floor(FILENAME), header, to
  }' $sources)

floors() # FLOOR ALLOWED...
{
  report "floor $1 includes no floor above it" "$(printf '%s\n' "$includes" |
    awk -v floor="$1" -v allowed=" $* - " '
      $2 == floor && !index(allowed, " " $4 " ") { print $1 " includes \"" $3 "\"" }')"
}

library() # CLAIM HEADERS FILES: the last two are regular expressions
{
  report "$1" "$(printf '%s\n' "$includes" |
    awk -v headers="^($2)\$" -v files="^($3)" '
      $3 ~ headers && $1 !~ files { print $1 " includes <" $3 ">" }')"
}

report 'there are includes to check' "$([ -n "$includes" ] || echo "none below $PWD")"
below='comm device kernels model base'
floors base
floors model base
floors device kernels model base
floors comm device base
floors io comm model base
floors job io comm model base
# shellcheck disable=SC2086
for job in encode harvest seed solve synth; do floors $job $below; done
# shellcheck disable=SC2086
floors refit encode $below
# shellcheck disable=SC2086
floors look encode $below
# shellcheck disable=SC2086
floors terminal refit $below
# shellcheck disable=SC2086
floors fit refit encode seed $below
# shellcheck disable=SC2086
floors train refit encode seed $below
# shellcheck disable=SC2086
floors find train refit encode seed $below
jobs="serve find fit train terminal refit look solve seed synth harvest encode"
# shellcheck disable=SC2086
floors encoding job serve encode net io $below
# shellcheck disable=SC2086
floors results job find refit solve io $below
# shellcheck disable=SC2086
floors cli results encoding job $jobs net io comm device model base
# shellcheck disable=SC2086
floors bench cli encoding job train refit serve encode net io $below
floors net base
# shellcheck disable=SC2086
floors serve encode net $below
floors library encode device kernels model base
floors kernels

library 'HDF5 has its users in src/io/h5' \
  'hdf5.*[.]h|H5.*[.]h' 'src/io/h5/|tests/'
library 'MPI has its users in src/comm' 'mpi[.]h' 'src/comm/|tests/'
library 'NCCL has one user, src/comm/nccl.c' 'nccl[.]h' 'src/comm/nccl([.]c|_late[.]h)$'
library 'CUDA has its users in src/device/cuda' \
  '(cuda|nvrtc).*[.]h' 'src/device/cuda/'
library 'OpenSSL has one user, src/base/sha256.c' 'openssl/.*[.]h' 'src/base/sha256[.]c$'
library 'ZeroMQ has its users in src/net' 'zmq[.]h' 'src/net/'
library 'OpenMP stays on the device floor, and base/cores.c asks it for its places' \
  'omp[.]h' 'src/device/|src/base/cores[.]c$'
library 'BLAS is a peer, for bench and tests' \
  '(cblas|lapacke).*[.]h' 'src/bench/|tests/'
library 'PETSc is for reference tests' 'petsc.*[.]h' 'tests/ref_petsc_[a-z0-9_]*[.]c$'

# shellcheck disable=SC2086
report 'OpenMP pragmas stay on the device floor and in base/team.c' \
  "$(grep -lE '^[ 	]*#[ 	]*pragma[ 	]+omp' $sources /dev/null |
    grep -vE '^src/(device/|base/team[.]c$)')"
report 'every folder of src is a floor' \
  "$(find src -mindepth 1 -maxdepth 1 -type d ! -name .deps |
    grep -vE '/(base|model|device|comm|io|encode|harvest|seed|solve|synth)$' |
    grep -vE '/(refit|look|terminal|find|fit|train|bench|job|cli|results)$' |
    grep -vE '/(encoding|net|serve|library)$')"
echo "1..$count"
exit $status
