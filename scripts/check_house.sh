#!/bin/sh
# Count things that should become fewer in this source tree, and check that no count has risen.
# Prints TAP, each count with its ceiling; part of `make check`, and can be run by hand.
# A change that lowers a count must lower its ceiling here too.  Ceilings of counts that grow with
# most changes leave some space.
cd "${srcdir:-$(dirname "$0")/..}" || exit 99
. scripts/tap.sh

sources=$(find src kernels \( -name '*.[ch]' -o -name '*.cu' \) ! -path src/config.h \
  ! -path src/cli/revision.h ! -name kernel_texts.c 2> /dev/null | LC_ALL=C sort)
report 'there are sources to count in' "$([ -n "$sources" ] || echo "none below $PWD")"

at_most() # CEILING COUNT WHAT
{
  report "$3: $2, at most $1" "$([ "$2" -le "$1" ] || echo "$2 is more than $1")"
}

uses() # PATTERN FILES...: the number of matches of an extended regular expression
{
  pattern=$1
  shift
  cat "$@" | grep -oE -- "$pattern" | wc -l
}

lines() # FILES...: the number of lines of the files that exist
{
  cat "$@" 2> /dev/null | wc -l
}

words() # FILES...
{
  cat "$@" | wc -w
}

long() # FILE: the number of sentences (one per line) with more than 30 words
{
  awk '/^[|`#]/ || /^ *```/ { next } NF > 30' "$1" | wc -l
}

outside=$(printf '%s\n' "$sources" | grep -v '^src/comm/')
cli=src/cli
# The identity of a job comes from the table of options only, and its text has no fixed length.
# shellcheck disable=SC2086
at_most 0 "$(uses '\<options_tell\>' $sources)" 'options_tell in src'
# shellcheck disable=SC2086
at_most 0 "$(uses 'options\[512\]' $sources)" 'options[512] in src'
# The list leaves out run.h, which was a part of command.h, and threads and process, which every
# command has.  It also leaves out command.c, which has only tables of options; and fit_job,
# refit_job and train_job, which compute, log and write run.json.
at_most 2899 "$(lines $(ls src/job/*.[ch] | grep -vE '/(run[.]h|threads[.]|process[.])') \
  src/results/sweep_files.[ch] src/results/systems_output.[ch] \
  src/encoding/encode_files.[ch] \
  $cli/fit_files.[ch] $cli/refit_files.[ch] \
  $cli/train_files.[ch])" 'lines of the life of a job that can be resumed'
# Only src/comm/failure.c changes the states of the failure protocol of comm.
# shellcheck disable=SC2086
at_most 0 "$(uses '\<LOCALLY\>' $sources)" 'LOCALLY in src'
# shellcheck disable=SC2086
at_most 0 "$(uses '\<(comm|c|rows|alone|group|like|part)(->|\.)(failed|agreed|met|failure)\>' \
  $outside)" 'states of communicators that others read or write'
# Things that were removed, or should be.
at_most 59 "$(find src/cli -name '*.[ch]' ! -name revision.h | wc -l)" 'files of src/cli'
# shellcheck disable=SC2086
at_most 0 "$(uses '^int setenv\(' $sources)" 'definitions of functions of the C library'
at_most 1460 "$(lines src/io/autoencoder.[ch] src/io/settings.[ch] src/io/export.[ch] \
  src/io/tensors_write.[ch] src/io/npz.[ch])" 'lines of import and export in C'
# How many files one more command, kernel or option would change: the median number of files that
# name an existing one.
middle() # NAMES; stdin: a line "FILE NAME" for each use
{
  LC_ALL=C sort -u | awk -v names="$1" '
    BEGIN { split(names, list); for (i in list) known[list[i]] = 1 }
    $2 in known { files[$2]++ }
    END { for (name in files) print files[name] }' | sort -n |
    awk '{ n[NR] = $1 } END { print NR ? n[int((NR + 1) / 2)] : 99 }'
}
commands=$(sed -n 's/^COMMAND(\(.*\))/\1/p' src/cli/commands.def | tr '\n' ' ')
# shellcheck disable=SC2086
at_most 3 "$(grep -oHE '\<command_[a-z]+\>|COMMAND\([a-z]+\)|cmd_[a-z]+[.]c|sagitta-[a-z]+[.]1' \
  $sources src/cli/commands.def src/local.mk scripts/local.mk |
  sed 's/:\(command_\|COMMAND(\|cmd_\|sagitta-\)/ /; s/[).][c1]*$//' | middle "$commands")" \
  'files that name a command'
# A file names a kernel by its name, in lower or upper case, by its file, or by the struct of its
# arguments.
kernels=$(sed -n 's/^  X([A-Z0-9_]*, \([a-z0-9_]*\),.*/\1/p' src/device/cuda/kernels.h |
  tr '\n' ' ')
at_most 5 "$({
  grep -oHE 'KERNEL_[A-Z0-9_]+|X\([A-Z0-9_]+,|\<[a-z0-9_]+[.]cu\>|struct [a-z0-9_]+_args' \
    kernels/*.h kernels/*.cu kernels/local.mk src/device/cuda/*.[ch] |
    sed 's/:\(KERNEL_\|X(\|struct \)\{0,1\}/ /; s/_args$//; s/,$//; s/[.]cu$//' |
    awk '{ print $1, tolower($2) }'
  for name in $kernels; do echo "kernels/$name.cu $name"; done
} | middle "$kernels")" 'files that name a kernel'
# Only members with two words, because single words also mean other things.  sagitta-bench has
# options of its own.
options=$(grep -ohE '^ *\{"[a-z0-9-]+", OPTION_[A-Z]+, AT\([a-z0-9_.]+\)' src/cli/*.c |
  sed 's/.*AT(\(.*\))/\1/; s/.*[.]//' | grep _ | sort -u | tr '\n' ' ')
programs=$(printf '%s\n' "$sources" | grep -v '^src/bench/')
# shellcheck disable=SC2086
at_most 3 "$(grep -oHE '\<[a-z0-9]+_[a-z0-9_]+\>' $programs | tr : ' ' | middle "$options")" \
  'files that name the member of an option'
at_most 0 "$(awk '
  /^ *[{]"[a-z0-9-]+", OPTION_/ { row = "" }
  { sub(/^ */, ""); row = row $0 }
  /[}],?$/ && row ~ /^[{]"/ {
    gsub(/(AT|offsetof)[(][^)]*[)]/, "AT", row)
    gsub(/""/, "", row)
    print row
    row = ""
  }' src/cli/*.c | sort | uniq -d | wc -l)" 'rows of options that stand in several tables'
paths=$(grep -ohE '\{"/[A-Za-z0-9_/]+", TYPE_' src/io/*.c | cut -d'"' -f2 | sort -u)
# shellcheck disable=SC2086
at_most 28 "$(grep -oHE '"/[A-Za-z0-9_/]+"' $sources | tr -d '"' | LC_ALL=C sort -u | cut -d: -f2 |
  sort | uniq -d | grep -cxF "$paths")" 'datasets whose path stands in more than one file'
# The frames from main to a launch.  Each listed function must exist and call the next one, under
# the name after @ if there is one.
frames() # CEILING WHAT FILE:FUNCTION[@CALLED]...
{
  ceiling=$1 what=$2 from='' body='' broken=''
  shift 2
  for link; do
    name=${link#*:}
    called=${name#*@}
    name=${name%@*}
    [ -z "$from" ] || printf '%s' "$body" | grep -qF -- "$called(" ||
      broken="$broken $from does not call $called;"
    from=$name
    body=$(sed -n "/^[a-z].*\\<$name(/,/^}/p" "src/${link%%:*}")
  done
  report "$what: each function calls the next" "$broken"
  at_most "$ceiling" $# "$what"
}
route='device/operations.c:device_route device/cuda/route.c:cuda_route@backend->route
  device/cuda/route.c:windows_route device/cuda/exact.c:cuda_launch_exact
  device/cuda/load.c:cuda_launch'
# shellcheck disable=SC2086
frames 10 'frames from main to a launch of encode' cli/main.c:main \
  'cli/cmd_encode.c:encode_command@command->run' \
  encode/encode.c:encode_run encode/encode.c:blocks_run encode/steps.c:step_route $route
# shellcheck disable=SC2086
frames 13 'frames from main to a launch of fit' cli/main.c:main \
  'cli/cmd_fit.c:fit_command@command->run' fit/fit.c:fit_run fit/sweep_end.c:fit_sweep_close \
  fit/sweep_end.c:rows_encode refit/sparse_coder.c:sparse_coder_run \
  refit/sparse_coder.c:rows_run refit/sparse_coder.c:round_route $route
# Words that are not terms of the field.  held_out and sparse_coder are; some names are OpenMP's.
words='turns?|places?|tells?|told|look|held|judges?|coder|lots?|pages?|walk|decks?|seal|intake'
words="$words|former|forget|bring|revive|twins?|share|partners?|companions?|mend"
# Keys of JSON (whole strings in quotes) cannot be renamed here: other programs read them, and they
# have a format_version.  in_place is a term of every textbook.
# shellcheck disable=SC2086
at_most 0 "$(cat $sources | sed 's/"[a-z0-9_]*"//g' | grep -oE '\<[A-Za-z0-9_]+\>' | grep '_' |
  sed 's/held_out//; s/sparse_coder//; s/^in_place$//' | grep -v '^omp_get_' | LC_ALL=C sort -u |
  grep -cE "(^|_)($words)(_|\$)")" 'identifiers with words of our own'
# English.
at_most 0 "$(long README.md)" 'sentences of README.md over 30 words'
at_most 0 "$(long doc/design.md)" 'sentences of doc/design.md over 30 words'
at_most 0 "$(uses '\<(goes|go|going|went|gone) on\>' README.md doc/*.md)" '"goes on" in documents'
at_most 150 "$(lines doc/bench.md)" 'lines of doc/bench.md'
at_most 90 "$(lines README.md)" 'lines of README.md'
at_most 1500 "$(words doc/features.md)" 'words of doc/features.md'
at_most 50000 "$(words README.md doc/*.md)" 'words of README.md and doc'
echo "1..$count"
exit $status
