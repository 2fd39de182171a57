#!/bin/sh
# Check the form of source files: clang-format, the first lines, the width.
# Prints TAP; part of `make check`, and can be run by hand.  `make format` repairs most errors.
cd "${srcdir:-$(dirname "$0")/..}" || exit 99
. scripts/tap.sh

# Generated files are not checked.
sources=$(find src kernels tests \( -name '*.[ch]' -o -name '*.cu' \) ! -path src/config.h \
  ! -path src/cli/revision.h 2> /dev/null | LC_ALL=C sort)
programs=$(find scripts tests -type f ! -path '*/autotools/*' ! -path '*/__pycache__/*' \
  \( -name '*.sh' -o -name '*.py' -o -path 'scripts/*' ! -name '*.*' \) | LC_ALL=C sort)

report 'there are sources and scripts to check' \
  "$([ -n "$sources" ] && [ -n "$programs" ] || echo "none below $PWD")"

# shellcheck disable=SC2086
first=$(awk '
  FNR == 1 && $0 != "/* SPDX-License-Identifier: BSD-3-Clause" {
    print FILENAME ":1: not the SPDX line"
  }
  FNR == 2 && $0 !~ /^ \* [A-Za-z`].* .* / { print FILENAME ":2: has no description" }
' $sources)
report 'source files begin with the licence and a description' "$first"

# The first line after #! and the licence, if the file has these.
# shellcheck disable=SC2086
report 'scripts and their tests begin with a description' "$(awk '
  FNR == 1 { seen = 0 }
  seen || /^#!/ || /SPDX/ { next }
  { seen = 1 }
  !/^(# |""")[A-Za-z`].* .* / { print FILENAME ":" FNR ": has no description" }
' $programs)"

# shellcheck disable=SC2086
report 'lines have at most 100 columns and no tabs' "$(LC_ALL=C.UTF-8 awk '
  length($0) > 100 { print FILENAME ":" FNR ": " length($0) " columns" }
  FILENAME !~ /scripts/ && /\t/ { print FILENAME ":" FNR ": a tab" }
  /[ \t]$/ { print FILENAME ":" FNR ": a blank at the end" }' $sources $programs)"

# Versions of clang-format differ.  The one of Debian 12 is used.
formatter=
for name in clang-format-14 clang-format; do
  case $($name --version 2> /dev/null) in *'version 14.'*) formatter=$name; break ;; esac
done
claim='clang-format agrees'
if [ -z "$formatter" ]; then
  count=$((count + 1))
  echo "ok $count - $claim # SKIP clang-format 14 is not installed"
else
  # shellcheck disable=SC2086
  report "$claim" "$($formatter --dry-run -Werror $sources 2>&1 || echo "it exits with $?")"
fi
echo "1..$count"
exit $status
