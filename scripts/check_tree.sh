#!/bin/sh
# Check that no file includes itself through other files, that source files have headers, that no
# kernel is left out of the build, and that make does not overwrite a script with another one.
# Prints TAP; part of `make check`, and can be run by hand.
cd "${srcdir:-$(dirname "$0")/..}" || exit 99
. scripts/tap.sh

sources=$(find src kernels \( -name '*.[ch]' -o -name '*.cu' \) ! -path src/config.h \
  ! -path src/cli/revision.h ! -name kernel_texts.c 2> /dev/null | LC_ALL=C sort)
report 'there are sources to check' "$([ -n "$sources" ] || echo "none below $PWD")"

# The program contains the texts of kernels.  A missing one would only be noticed on a GPU.
report 'kernels/local.mk names every kernel and header' "$(
  for file in kernels/*.cu kernels/*.h; do
    grep -Eq "%D%/$(basename "$file")( |\$)" kernels/local.mk || echo "$file"
  done)"

# Each file and a header that it includes, both as paths from here.  Kernels include headers without
# a path.
# shellcheck disable=SC2086
awk '/^[ \t]*#[ \t]*include[ \t]*"/ {
  split($0, part, "\"")
  at = part[2] ~ /\// ? "src/" part[2] : FILENAME ~ /^kernels/ ? "kernels/" part[2] : ""
  if (at == "") { # in the folder of the file, or a kernel header
    at = FILENAME
    sub(/[^\/]*$/, part[2], at)
    if (system("test -f " at)) at = "kernels/" part[2]
  }
  print FILENAME, at
}' $sources > "${TMPDIR:-/tmp}/sagitta-includes.$$"
report 'no file includes itself, directly or through other files' "$(
  awk '$1 == $2 { print $1 " includes itself" }' "${TMPDIR:-/tmp}/sagitta-includes.$$"
  tsort "${TMPDIR:-/tmp}/sagitta-includes.$$" 2>&1 > /dev/null |
    sed 's/^tsort: [^ ]*: input contains a loop:/a loop:/; s/^tsort: /  /')"
rm -f "${TMPDIR:-/tmp}/sagitta-includes.$$"

# A file NAME.c must have a NAME.h in its folder or, for the operations of a device, one folder
# above.  scripts/headless.txt lists the files without such a header, each with a reason.  A pattern
# in the list may stand for several files.
has_header() # FILE
{
  [ -f "${1%.c}.h" ] || [ -f "$(dirname "$(dirname "$1")")/$(basename "$1" .c).h" ]
}
list=scripts/headless.txt
max=$(sed -n 's/^# At most \([0-9]*\).*/\1/p' $list)
# shellcheck disable=SC2086
headless=$(for file in $sources; do
  case $file in *.c) has_header "$file" || echo "$file" ;; esac
done)
listed=$(sed '/^#/d; /^$/d; s/ .*//' $list)
report 'scripts/headless.txt has each source file without a header of its own, with the reason' "$(
  for file in $headless; do
    grep '^src' $list | while read -r pattern reason; do
      # shellcheck disable=SC2254
      case $file in $pattern) [ -z "$reason" ] || echo known ;; esac
    done | grep -q known || echo "$file has no header of its own, and no reason"
  done)"
report 'scripts/headless.txt names no other files' "$(for file in $listed; do
  [ -f "$file" ] || echo "$file does not exist: take it out of the list"
  if has_header "$file"; then echo "$file has a header: take it out of the list"; fi
done
printf '%s\n' "$listed" | sort | uniq -d | sed 's/$/ is listed twice/')"
count_headless=$(printf '%s\n' "$headless" | grep -vc '/cmd_[a-z]*[.]c$')
report "at most $max files, commands aside, have no header of their own" \
  "$([ "$count_headless" -le "${max:-0}" ] || echo "there are $count_headless")"

# A built-in rule of make copies NAME.sh over NAME if NAME is older, as it may be in a clone.
report 'no script NAME stands beside a NAME.sh' "$(find scripts tests -name '*.sh' |
  while read -r file; do [ ! -e "${file%.sh}" ] || echo "$file"; done)"
echo "1..$count"
exit $status
