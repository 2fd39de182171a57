#!/bin/sh
# What synth and encode compute has the fingerprints of tests/expected, on any processor: with
# EMULATOR the program runs under it.
sagitta=${builddir:-.}/sagitta
source=$(cd "${srcdir:-.}" && pwd)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
count=0

run()
{
  $EMULATOR "$sagitta" "$@" 2>> log || { sed 's/^/# /' log; echo "Bail out! sagitta $1"; exit 1; }
}
check() # NAME OPTIONS OF ENCODE: the fingerprint of expected/fingerprints
{
  name=$1
  shift
  : > log
  run encode "$@" --output "$name-out.h5"
  want=$(sed -n "s/^$name //p" "$source/tests/expected/fingerprints")
  got=$(sed -n 's/.*fingerprint=\([0-9a-f]*\).*/\1/p' log | tail -n 1)
  count=$((count + 1))
  [ -n "$want" ] && [ "$got" = "$want" ] || printf 'not '
  echo "ok $count - $name: fingerprint $got is $want"
}

run synth --kind trig --output trig
check trig --rows trig/rows.h5 --dictionary trig/dictionary.h5 --top-s 4
check trig-four-rounds --rows trig/rows.h5 --dictionary trig/dictionary.h5 --top-s 4 --rounds 4
run synth --n-rows 333 --atoms 500 --columns 32 --frame 3 --output frames
check frames --rows frames/rows.h5 --dictionary frames/dictionary.h5 --top-s 5
check frames-rounds --rows frames/rows.h5 --dictionary frames/dictionary.h5 --top-s 5 --rounds 4
echo "1..$count"
