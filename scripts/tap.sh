#!/bin/sh
# Functions for scripts that print TAP.  report prints the outcome of one claim.  BREACHES has a
# line for each breach; the claim holds if it is empty.
count=0
status=0

report() # CLAIM BREACHES
{
  count=$((count + 1))
  if [ -z "$2" ]; then
    echo "ok $count - $1"
  else
    echo "not ok $count - $1"
    printf '%s\n' "$2" | head -n 40 | sed 's/^/# /'
    status=1
  fi
}

# A claim of many checks.  claim_begin begins it and ends the previous one; a check prints only if
# it fails.
claim=

claim_begin() # CLAIM
{
  claim_end
  claim=$1 checks=0 failed=0 left_out=
}
claim_check() # STATUS WHAT
{
  checks=$((checks + 1))
  [ "$1" -eq 0 ] && return
  failed=$((failed + 1))
  echo "# fails: $2"
}
claim_skip() # REASON
{
  left_out=$1
}
claim_end()
{
  [ -n "$claim" ] || return 0
  count=$((count + 1))
  if [ "$checks" -eq 0 ] && [ -n "$left_out" ]; then
    echo "ok $count - $claim # SKIP $left_out"
  elif [ "$checks" -eq 0 ]; then
    echo "not ok $count - $claim: nothing was checked"
    status=1
  elif [ "$failed" -gt 0 ]; then
    echo "not ok $count - $claim: $failed of $checks checks failed"
    status=1
  else
    echo "ok $count - $claim ($checks checks${left_out:+, some left out: $left_out})"
  fi
  claim=
}
