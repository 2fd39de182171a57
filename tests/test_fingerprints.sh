#!/bin/sh
# Claim: the results of fit, and of encode with rows that synth made, have the fingerprints of
# tests/expected on any processor.  If EMULATOR is set, the program runs under it.
sagitta=${builddir:-.}/sagitta
source=$(cd "${srcdir:-.}" && pwd)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
count=0 few=

run()
{
  $EMULATOR "$sagitta" "$@" 2>> log || { sed 's/^/# /' log; echo "Bail out! sagitta $1"; exit 1; }
}
judge() # NAME GOT: compares with the fingerprint of expected/fingerprints
{
  want=$(sed -n "s/^$1 //p" "$source/tests/expected/fingerprints")
  count=$((count + 1))
  [ -n "$want" ] && [ "$2" = "$want" ] || printf 'not '
  echo "ok $count - $1: fingerprint $2 is $want"
}
check() # NAME COMMAND OPTIONS: checks the fingerprint of its result
{
  name=$1
  shift
  : > log
  run "$@" --output "$name-out"
  judge "$name" "$(sed -n 's/.*fingerprint=\([0-9a-f]*\).*/\1/p' log | tail -n 1)"
}
fitted() # NAME OPTIONS: checks codes and atoms of a fit of real rows
{
  check fit-"$1" fit --find codes --rows real.npy --holdout-share 0.3 --atoms 64 --top-s 3 \
    --rounds 2 --tolerance 0 --twin-cosine 0.6 $2
  judge fit-"$1"-dictionary \
    "$(run inspect "fit-$1-out/supports.h5" | sed -n 's/^ *dictionary_hash  *\([0-9a-f]*\)$/\1/p')"
}

run synth --kind trig --output trig
check trig encode --rows trig/rows.h5 --dictionary trig/dictionary.h5 --top-s 4
check trig-four-rounds encode --rows trig/rows.h5 --dictionary trig/dictionary.h5 --top-s 4 \
  --rounds 4
run synth --n-rows 333 --atoms 500 --columns 32 --frame 3 --output frames
check frames encode --rows frames/rows.h5 --dictionary frames/dictionary.h5 --top-s 5
check frames-rounds encode --rows frames/rows.h5 --dictionary frames/dictionary.h5 --top-s 5 \
  --rounds 4
"${PYTHON:-/usr/bin/python3}" -c "import sys, h5py, numpy
numpy.save('real.npy', h5py.File(sys.argv[1])['rows'][:1024])" \
  "$source/input/minilm-l3-kjv-8k.h5" || { echo 'Bail out! no rows'; exit 1; }
[ "${CHECK_FULL:-0}" != 0 ] || few=$EMULATOR # an emulator is slow: one of each kind
for codes in signed nonnegative; do
  for update in atoms joint; do
    case $few:$codes-$update in ?*:signed-atoms | ?*:nonnegative-joint) continue ;; esac
    fitted "$codes-$update" "--codes $codes --update $update --sweeps 5"
  done
done
fitted parts '--minibatch 150 --sweeps 1'
echo "1..$count"
