#!/bin/sh
# Run one compiled test, and print one TAP stream.  If the test has a line `RUN: np=`, it is run
# with each number of ranks after `np=`.  If the line has `full=`, too, CHECK_FULL=1 takes the
# numbers after this instead.  Under an EMULATOR, which is slow and has no MPI launcher, the test is
# run once, as one rank.
test=$1
name=$(basename "$test")
ranks=$(sed -n 's/^ \* RUN: np=\([0-9 ]*\).*/\1/p' "$srcdir/tests/$name.c")
full=$(sed -n 's/^ \* RUN: .*full=\([0-9 ]*\).*/\1/p' "$srcdir/tests/$name.c")
if [ -n "$full" ] && [ "${CHECK_FULL:-0}" != 0 ]; then ranks=$full; fi
[ -z "$EMULATOR" ] || exec $EMULATOR "$test"
[ -n "$ranks" ] || exec "$test"
# Two builds of scripts/check, the one with sanitizers and clang's, do not test several numbers of
# ranks: there the largest number is enough.
if [ "${CHECK_FULL:-0}" = 0 ] && { [ -n "$SANITIZED" ] || [ "$CUTS" = few ]; }; then
  ranks=$(echo "$ranks" | awk '{ print $NF }')
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
count=0
for np in $ranks; do
  out=$($MPIEXEC --oversubscribe --bind-to none -n "$np" "$test" 2>&1)
  status=$?
  printf '%s\n' "$out" | grep -v '^1\.\.' | awk -v base=$count -v np="$np" '
    /^(not )?ok / { n++; sub(/ok [0-9]+/, "ok " base + n " np=" np); } { print }'
  count=$((count + $(printf '%s\n' "$out" | grep -cE '^(not )?ok ')))
  planned=$(printf '%s\n' "$out" | sed -n 's/^1\.\.//p')
  count=$((count + 1))
  if [ $status -eq 0 ] && [ -n "$planned" ]; then echo "ok $count np=$np ended well"
  else echo "not ok $count np=$np ended with status $status"; fi
done
echo "1..$count"
