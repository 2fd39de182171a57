#!/bin/sh
# Claim: the command line works.  Messages name the nearest key, and help names every option.
# Options override decks, and used.in repeats a run.  Every command has a man page and completion.
sagitta=${builddir:-.}/sagitta
source=$(cd "${srcdir:-.}" && pwd)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
. "$source/scripts/tap.sh"

check() # STATUS WHAT [FILE TO SHOW]
{
  claim_check "$1" "$2"
  [ "$1" -eq 0 ] || [ -z "$3" ] || sed 's/^/#   /' "$3"
}
fails() # CODE MESSAGE ARGUMENTS...: one message, on stderr, and that exit code
{
  code=$1 message=$2
  shift 2
  "$sagitta" "$@" > out 2> err
  got=$?
  { [ $got -eq "$code" ] && [ ! -s out ] && grep -qF -- "$message" err; }
  check $? "'sagitta $*' exits $code: $message" err
}
same() # A B CLAIM
{
  "$sagitta" diff "$1" "$2" > out 2>&1
  check $? "$3" out
}

claim_begin 'usage errors exit with 2 and name the nearest option'
fails 2 'Usage: sagitta COMMAND'
fails 2 "unknown command 'encod', the nearest is 'encode'" encod
fails 2 "unknown command 'verfy', the nearest is 'verify'" verfy
fails 2 "unknown command 'encod', the nearest is 'encode'" --describe encod
fails 2 "'--rows' is in the place of the command, which comes first" --rows a.h5
fails 2 "unknown option '--topk', the nearest is '--top-s'" encode --topk 3
fails 2 "unknown option '--dictionray=x', the nearest is '--dictionary'" encode --dictionray=x
fails 2 "'top-s' is 0, not in 1 .. 256" encode --top-s 0
fails 2 "'3.5' of 'rounds' is not a whole number" encode --rounds 3.5
fails 2 "'x' of 'rho' is not a number" encode --rho x
fails 2 "'sse' of 'cpu-variant' is not one of auto|baseline|avx2|avx512" encode --cpu-variant sse
fails 2 "option '--rows' needs a value" encode --rows
fails 2 "'--output' needs a value, and '--center' behind it looks like an option" \
  seed --atoms 8 --output --center
fails 2 "a value of that name is written '--output=--centre'" seed --output --centre --atoms 8
fails 2 "unknown option '--dictionary': see 'sagitta fit --help'" fit --dictionary d
fails 2 "unknown option '-rows', the nearest is '--rows'" encode --force -rows a.h5
fails 2 "unknown option '-r': options are spelled out, such as '--rows'" encode --rho -1 -r
fails 2 "unknown option '-k': options are spelled out, such as '--top-s'" encode -k 32
fails 2 "unknown option '-z': options are spelled out, such as '--help'" encode -z
fails 2 "option '--top-s' is given twice" encode --top-s 3 --force --top-s=3
fails 2 "option '--force' is given twice" encode --force --force
fails 2 "'rho' is -1, not in 0 .. 1e+30" encode --rho -1
fails 2 "of 'top-s' is not a whole number" encode --top-s 99999999999999999999
fails 2 "'nan' of 'deadline' is not a number" encode --deadline nan
fails 2 "'output' has an empty value" encode --output ''
fails 2 "option '--force' takes no value" encode --force=3
fails 2 "'--rows' is missing" encode
fails 2 "unexpected argument 'b.in'" encode a.in b.in
fails 2 "'FILE' is missing" inspect
fails 2 "'bench' is a program of its own: 'sagitta-bench --help'" bench route

claim_begin 'errors in decks name the file and the line'
deck() # LINES
{
  printf '%s\n' "$@" > bad.in
}
deck '# a comment' '' 'top-s = 8' 'top_s = 16'
fails 2 "bad.in:4: unknown key 'top_s', the nearest is 'top-s'" encode bad.in
fails 2 "bad.in:3: unknown key 'top-s': see 'sagitta refit --help'" refit bad.in
deck 'top-s = 8' 'rounds = 2' 'top-s = 9'
fails 2 "bad.in:3: 'top-s' is set already in line 1" encode bad.in
deck 'top-s = 1000'
fails 2 "bad.in:1: 'top-s' is 1000, not in 1 .. 256" encode bad.in
deck 'top-s 8'
fails 2 "bad.in:1: 'top-s 8' is not \`key = value\`" encode bad.in
deck 'top-s = # eight'
fails 2 "bad.in:1: 'top-s' has no value" encode bad.in
deck 'rows = "a.h5'
fails 2 'bad.in:1: a quote is not closed' encode bad.in
deck 'force = 1'
fails 2 "bad.in:1: '1' of 'force' is neither yes nor no" encode bad.in
fails 74 "cannot open deck 'none.in'" encode none.in
fails 74 "cannot read deck '.': it is a folder, and folders are named by an option" encode .
fails 2 'minilm-l3-kjv-8k.h5:1: this is not text' encode "$source/input/minilm-l3-kjv-8k.h5"
printf 'top-s = 8\0\n' > bad.in
fails 2 'bad.in:1: this is not text' encode bad.in
: > empty.in
fails 2 "'--rows' is missing" encode empty.in
printf '\357\273\277top-s = 8\r\n\r\nrows = none.h5\r\ndictionary = x\r\noutput = x' > windows.in
fails 74 "cannot open 'none.h5'" encode windows.in

claim_begin 'help and man pages are there for every command and option'
"$sagitta" --version > out
sed 1q out | grep -Eqx 'sagitta [0-9]+\.[0-9]+\.[0-9]+[a-z0-9.-]*'
check $? 'sagitta --version names the version' out
known=0
for name in 'revision  [0-9a-z]+' 'compiler  (gcc|clang) [0-9]+' 'MPI       [A-Z].* [0-9]+[.]' \
  'HDF5      [0-9]+[.]' 'CUDA      ([0-9]+[.]|none)' 'NCCL      ([0-9]+[.]|none)'; do
  grep -Eq "^$name" out && known=$((known + 1))
done
[ $known -eq 6 ] && [ "$(wc -l < out)" -eq 7 ]
check $? 'sagitta --version names its compiler and libraries' out
"$sagitta" --help > help.all
"$sagitta" --list-options > commands
[ -s commands ] && [ -s help.all ]
check $? 'sagitta --help and --list-options print something'
while read -r command; do
  "$sagitta" "$command" --help > help 2> err
  [ $? -eq 0 ] && [ ! -s err ] && grep -q "^Usage: sagitta $command" help
  check $? "sagitta $command --help exits 0" err
  "$sagitta" --list-options "$command" > keys
  : > missing
  while read -r key; do
    grep -Eq -- "^ +$key(\$|[= ])" help || echo "$key" >> missing
  done < keys
  sed -n 's/^  ERR_[A-Z]* = \([0-9]*\),.*/\1/p' "$source/src/base/status.h" > codes
  while read -r code; do
    grep -Eq "(codes:.*|^|; )$code [a-z]" help || echo "exit code $code" >> missing
  done < codes
  [ -s keys ] && [ "$(wc -l < codes)" -eq 10 ] && [ ! -s missing ]
  check $? "sagitta $command --help explains its $(wc -l < keys) options, and exit codes" missing
  # argp puts margins at wrong places when its buffer is nearly full; other words then help.
  ! grep -nE '^(( {7,28}| {30,})[^ ]| +$)' help > shifted
  check $? "sagitta $command --help has its two columns" shifted
  grep -q "^  $command " help.all
  check $? "sagitta --help lists $command"
  page=${builddir:-.}/doc/man/sagitta-$command.1
  if [ -d "$(dirname "$page")" ]; then
    [ -s "$page" ]
    check $? "$command has a man page"
  else
    claim_skip "man pages are made by help2man, which is not installed"
  fi
done < commands

cat > complete.bash << 'END'
source /usr/share/bash-completion/bash_completion
source "$1"
PATH=$(dirname "$2"):$PATH
shift 2
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
_sagitta sagitta "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
END
completes() # EXPECTED WORDS...: the last word is completed to EXPECTED
{
  expected=$1
  shift
  if [ ! -f /usr/share/bash-completion/bash_completion ]; then
    claim_skip 'bash-completion is not installed'
    return
  fi
  bash complete.bash "$source/scripts/completion/sagitta" "$sagitta" "$@" > out 2> err
  [ "$(tr '\n' ' ' < out)" = "$expected " ]
  check $? "'$*' completes to ${expected:-nothing}" out
}
claim_begin 'the first session of --help runs as it stands: fit, encode unseen rows, inspect'
mkdir session && cd session || exit 99
ln -s "$source/input/minilm-l3-kjv-8k.h5" acts.h5
ln -s "$source/input/minilm-l3-kjv-next.h5" unseen.h5
sed -n '/first session/,/^Exit/s/^  //p' ../help.all > lines
[ "$(sed 's/.*sagitta \([a-z]*\) .*/\1/' lines | tr '\n' ' ')" = 'fit encode inspect inspect ' ]
check $? 'it is fit, encode, inspect' lines
sed 's/mpirun -n 2 //; s/--atoms 1024 --top-s 16/--atoms 40 --top-s 3 --sweeps 1/' lines > few
while read -r _ words; do
  # shellcheck disable=SC2086
  "$sagitta" $words > page 2> err < /dev/null
  check $? "sagitta $words" err
done < few
grep -q '^atom 17 of run/' page && grep -q '\[.*\]' page
check $? 'the page of an atom has tokens' page
cd ..

claim_begin 'bash completes commands, options, values and names of files'
touch a.h5 a.txt
completes 'encode' sagitta en
completes '--top-s' sagitta encode --top
completes 'a.h5' sagitta encode --rows a
completes 'baseline' sagitta encode --cpu-variant b
completes 'a.h5' sagitta inspect a
completes 'cpu cuda' sagitta fit --device c
completes 'a.h5 a.txt' sagitta encode --output a
completes 'f16' sagitta train --precision f1
completes 'a.h5 a.txt' sagitta serve --backlog a
completes 'a.h5 a.txt' sagitta serve --ready a
completes 'a.h5 a.txt' sagitta serve --listen a
completes '' sagitta encode --rho a
rm a.h5 a.txt

claim_begin 'options override the deck, and used.in repeats a run'
rows=$source/input/minilm-l3-kjv-8k.h5
"$sagitta" seed --rows "$rows" --atoms 64 --center --output dictionary 2> err
check $? 'seed makes a dictionary' err
cat > job.in << END
# Data
rows = "$rows"   # a comment
dictionary = dictionary/dictionary.h5

# Method
top-s = 8
output = eight
END
"$sagitta" encode job.in 2> err
check $? 'a deck runs' err
"$sagitta" encode job.in --top-s 4 --output four 2> err
check $? 'an option beside a deck is accepted' err
grep -qx 'top-s = 8' eight/used.in && grep -qx 'top-s = 4' four/used.in
check $? 'used.in has the values that were used'
"$sagitta" encode four/used.in --output again 2> err
check $? 'used.in runs' err
same four/supports.h5 again/supports.h5 'used.in repeats the run, bit for bit'
"$sagitta" diff four/supports.h5 eight/supports.h5 > out 2> err
[ $? -eq 1 ] && [ -s out ]
check $? 'diff exits 1 and names a difference when there is one' err
fails 73 'four/supports.h5' encode four/used.in
"$sagitta" encode four/used.in --force --output again 2> err
check $? '--force replaces a result' err
"$sagitta" encode four/used.in --resume --output resumed 2> err &&
  grep -qx 'resume = yes' resumed/used.in
check $? 'a run with --resume says so in its used.in' err
before=$(stat -c %i resumed/supports.h5)
"$sagitta" encode resumed/used.in 2> err && [ "$(stat -c %i resumed/supports.h5)" = "$before" ]
check $? 'its used.in leaves the complete result as it is' err
"$sagitta" encode resumed/used.in --force 2> err &&
  [ "$(stat -c %i resumed/supports.h5)" != "$before" ] && grep -qx 'resume = no' resumed/used.in
check $? '--force makes the result anew, although the deck has --resume' err
"$sagitta" encode --rows "$rows" --dictionary dictionary/dictionary.h5 --top-s 4 \
  --output alone.h5 2> err
check $? 'options suffice without a deck, and an --output in .h5 is the file' err
same four/supports.h5 alone.h5 'options without a deck give the same bits'
grep -q ' explained_variance  *0\.' four/run.log
check $? 'run.log has the metrics' four/run.log
"$sagitta" inspect four/supports.h5 > out 2> err
grep -qx '    top-s = 4' out && grep -qx '    # Routing' out
check $? 'inspect shows the options, one a line' out
grep -qx '  command  *sagitta encode job.in --top-s 4 --output four' out
check $? 'inspect shows the command as it was given' out

claim_begin "a run's folder stands for its files, FILE:NAME for FILE:/NAME"
"$sagitta" encode --rows "$rows" --dictionary dictionary --top-s 4 --output whole 2> err
check $? '--dictionary FOLDER is its dictionary.h5' err
same four whole 'diff of two folders compares their files'
"$sagitta" encode --rows "$rows:rows" --dictionary dictionary/dictionary.h5:atoms --top-s 4 \
  --output whole --force 2> err
check $? 'FILE:NAME is taken where FILE is' err
same four/supports.h5 whole/supports.h5 'FILE:NAME gives the same bits'
cp dictionary/dictionary.h5 whole/
"$sagitta" color --supports whole/ --output whole 2> err &&
  "$sagitta" assemble --rows "$rows" --dictionary whole --supports whole --classes whole/ \
    --output whole 2> err && "$sagitta" solve --systems whole --output whole 2> err
check $? 'a folder stands for its supports, classes and systems, too' err
for command in inspect verify; do
  "$sagitta" $command whole > out 2> err
  check $? "$command of a folder" err
  for file in dictionary supports classes systems solutions; do
    grep -q "whole/$file.h5" out
    check $? "$command has $file.h5"
  done
done
"$sagitta" diff four whole > out 2> err
[ $? -eq 1 ] && grep -q "'classes.h5' is only in 'whole'" out
check $? 'diff names a file that one folder lacks' out
mkdir hollow copied
cp whole/*.h5 copied/
"$sagitta" diff whole copied > out 2> err
check $? 'folders of the same files are equal' err
for name in start.h5 a.b.h5; do
  cp whole/dictionary.h5 copied/$name
  "$sagitta" diff copied whole > out 2> err
  [ $? -eq 1 ] && grep -q "'$name' is only in 'copied'" out
  check $? "diff names $name, which is called as no kind is" out
  head -c 3000 whole/dictionary.h5 > copied/$name
  fails 65 "copied/$name" verify copied --quiet
  cp -r copied broken
  fails 65 "/$name" diff copied broken
  rm -r broken copied/$name
done
ln -sf nowhere copied/supports.h5
for command in 'verify --quiet' 'diff whole' 'diff copied'; do
  # shellcheck disable=SC2086
  fails 74 "copied/supports.h5': No such file" $command copied
done
"$sagitta" inspect copied > out 2> err
[ $? -eq 74 ] && grep -q "copied/supports.h5': No such file" err
check $? 'inspect of a folder with a link to nothing' err
rm copied/supports.h5
mkfifo copied/supports.h5
fails 74 'is not a regular file' verify copied --quiet
rm copied/supports.h5
echo damaged > copied/.hidden.h5
"$sagitta" verify copied > out 2> err
check $? 'hidden files are left out' err
fails 74 "cannot open 'nowhere'" diff whole nowhere
fails 65 "folder 'hollow' has no result" inspect hollow
fails 2 "'whole' is a folder, 'four/supports.h5' is a file" diff whole four/supports.h5
fails 74 "cannot open 'whole/rows.h5'" seed --rows whole --atoms 3 --output x
claim_begin 'files of other programs are recognised, and the message has a line that converts them'
# shellcheck disable=SC2059
while read -r end bytes name; do
  printf "$bytes" > "other.$end"
  fails 65 "'other.$end' is $name, not HDF5 or .npy" seed --rows "other.$end" --atoms 3 --output x
  grep -q "python3 -c 'import h5py, " err
  check $? "other.$end: the message has a line that converts it" err
done << 'END'
npz PK\003\004and-more a NumPy archive
pt PK\003\004and-more a PyTorch file
pt \200\002and-more a PyTorch file
parquet PAR1and-more a Parquet file
bin and-more a file of bare numbers
END
printf '\020\000\000\000\000\000\000\000{"a":[]}' > other.st
fails 65 "'other.st' is a safetensors file: it is read as rows or atoms if its name ends in " \
  seed --rows other.st --atoms 3 --output x
fails 65 "'other.pt' is a PyTorch file" color --supports other.pt --output x
claim_begin 'names with blanks and quotes, and odd values of options, are taken'
mkdir 'odd "name# '
cp dictionary/dictionary.h5 'odd "name# /a "b".h5'
"$sagitta" encode job.in --dictionary 'odd "name# /a "b".h5' --top-s 4 --output odd 2> err &&
  "$sagitta" encode odd/used.in --output odd-again 2> err
check $? 'used.in repeats a run with blanks, quotes and # in a name' err
same odd/supports.h5 odd-again/supports.h5 'that run gives the same bits'
"$sagitta" encode job.in --top-s 4 --rounds 16 --output many 2> err
[ $? -eq 0 ] && grep -q 'warning: rounds is 16, but a row gets only 4 atoms' err
check $? 'more rounds than atoms per row give a warning, and as many rounds as atoms' err
"$sagitta" encode job.in --top-s 4 --rounds 4 --output pursuit 2> err
same many/supports.h5 pursuit/supports.h5 '--rounds 16 gives the bits of --rounds 4'
claim_begin 'a result does not replace an input'
cp dictionary/dictionary.h5 input.h5
ln -s input.h5 link.h5
for result in input.h5 link.h5 ./input.h5; do
  fails 73 "/${result#./}' would replace an input of this run, 'input.h5'" \
    encode job.in --dictionary input.h5 --output $result --force
done
fails 73 "/input.h5' would replace an input of this run, 'input.h5'" \
  seed --rows input.h5:/atoms --atoms 4 --output input.h5 --force
same dictionary/dictionary.h5 input.h5 'the input is as it was'
claim_begin 'errors of standard output are reported'
for command in 'inspect input.h5' 'verify input.h5' 'diff input.h5 four/supports.h5' \
  'encode job.in --dry-run' --help --version \
  --list-options '--list-options encode' --describe \
  'encode --help' 'encode --usage' 'inspect --help'; do
  # shellcheck disable=SC2086
  "$sagitta" $command > /dev/full 2> err
  [ $? -eq 74 ] && grep -q 'cannot write to standard output: No space left' err
  check $? "'sagitta $command' on a full disk exits 74" err
done
claim_begin '--threads, the environment or the cores set the threads; wrong numbers give a warning'
cores=$(env -u OMP_NUM_THREADS nproc)
threads() # THREADS BY ARGUMENTS OF env AND mpirun...: checks what rank 0 says about threads
{
  want=$1 by=$2
  shift 2
  env -u OMP_NUM_THREADS -u SLURM_CPUS_PER_TASK "$@" "$sagitta" encode job.in --force --top-s 4 \
    --output threads 2> err
  [ $? -eq 0 ] && grep -q "] threads $want by=$by bound=.* cores=.* of=" threads/run.log
  check $? "'$*' gives $want threads by $by" err
}
mpiexec=${MPIEXEC:-mpirun}
# shellcheck disable=SC2086
{
  threads "$cores" cores $mpiexec --bind-to none -n 1
  threads $((cores > 1 ? cores / 2 : 1)) cores $mpiexec --oversubscribe --bind-to none -n 2
  threads 3 OMP_NUM_THREADS OMP_NUM_THREADS=3 $mpiexec --bind-to none -n 1
  threads 3 SLURM_CPUS_PER_TASK SLURM_STEP_ID=0 SLURM_CPUS_PER_TASK=3
  threads "$cores" cores SLURM_CPUS_PER_TASK=3
  threads "$cores" cores OMP_PROC_BIND=true
  threads "$cores" cores OMP_PLACES=cores
  ! grep -q warning err
  check $? 'numbers of threads that fit give no warning' err
  threads $((cores > 1 ? cores / 2 : 1)) cores OMP_PROC_BIND=true $mpiexec --oversubscribe \
    --bind-to none -n 2
  grep -q 'warning: OpenMP binds the threads of each of the 2 ranks .* --map-by' err
  check $? 'ranks whose threads OpenMP binds to the same cores: a warning says what to do' err
  threads $((cores + 1)) OMP_NUM_THREADS OMP_NUM_THREADS=$((cores + 1))
  grep -q "warning: $((cores + 1)) threads take turns on .* give --threads $cores" err
  check $? 'more threads than cores: a warning says what to give' err
  "$sagitta" encode job.in --force --top-s 4 --threads 2 --output threads 2> err
  grep -q '] threads 2 by=--threads' err
  check $? '--threads overrides other settings' err
  same four/supports.h5 threads/supports.h5 '--threads changes no bit'
  if [ "$cores" -gt 1 ] && $mpiexec --version 2> err | grep -q 'Open MPI'; then
    threads 1 cores $mpiexec --bind-to core -n 1
    grep -q 'warning: the ranks are bound to 1 of .* --bind-to none' err
    check $? 'a rank bound to one core: a warning says how to start it' err
  fi
}
claim_begin 'a rank alone needs no daemon; a dry run writes nothing and counts the dictionary'
touch no-folder
OMPI_MCA_orte_tmpdir_base=$PWD/no-folder "$sagitta" encode job.in --output alone 2> err
check $? 'a rank alone starts no daemon of Open MPI and needs no folder for it' err
"$sagitta" encode job.in --dry-run --output none > out 2> err
[ $? -eq 0 ] && grep -q '^memory' out && [ ! -e none ]
check $? '--dry-run says what is needed and writes nothing' err
"$sagitta" seed --rows "$rows" --atoms 512 --output more 2> err
for how in '1.6 off cpu' '2.4 off cuda' '2.8 on cuda'; do
  # shellcheck disable=SC2086
  set -- $how
  "$sagitta" encode job.in --dictionary more/dictionary.h5 --dry-run --filter "$2" --device "$3" |
    grep -q "dictionary $1,"
  check $? "filter $2 on $3 takes $1 MB for the dictionary"
done
claim_end
echo "1..$count"
