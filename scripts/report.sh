#!/bin/sh
# For scripts that check sources and print TAP: a claim holds when nothing is in breach of it.
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
