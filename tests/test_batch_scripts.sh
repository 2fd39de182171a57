#!/bin/sh
# Claim: the Slurm templates run a job again if it was stopped (75), and up to ten times if it lost
# a rank (76, 137).  They run no other job again.  The test has its own mpirun and scontrol, and
# needs no Slurm.
source=$(cd "${srcdir:-.}" && pwd)
sagitta=$(cd "${builddir:-.}" && pwd)/sagitta
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$source/scripts/tap.sh"

# scontrol notes its arguments.  mpirun ends with $CODE, or runs the command if that is empty.
mkdir "$work/bin"
cat > "$work/bin/mpirun" <<'EOF'
#!/bin/sh
[ -z "$CODE" ] || exit "$CODE"
shift 2
exec "$@"
EOF
printf '#!/bin/sh\necho "$@" >> "%s/told"\n' "$work" > "$work/bin/scontrol"
chmod +x "$work/bin/mpirun" "$work/bin/scontrol"

# Run a template as restart number RESTARTS.  Returns 0 if it asked to be run again.
again() # CODE RESTARTS TEMPLATE ARGUMENTS...
{
  code=$1 restarts=$2 template=$3
  shift 3
  rm -f "$work/told"
  env PATH="$work/bin:$PATH" CODE="$code" SLURM_RESTART_COUNT="$restarts" SLURM_JOB_ID=17 \
    SLURM_NTASKS=1 SLURM_JOB_NODELIST=here SLURM_ARRAY_TASK_ID="${TASK:-0}" SAGITTA="$sagitta" \
    bash "$source/scripts/slurm/$template" "$@" > "$work/log" 2>&1
  ended=$?
  [ "$(cat "$work/told" 2> /dev/null)" = 'requeue 17' ]
}

for template in job.sbatch encode_array.sbatch encode_gpu.sbatch; do
  claim_begin "$template runs a job again after 75, 76 and 137, but not for ever"
  again 75 3 $template; claim_check $? 'a job that was stopped'
  again 75 30 $template; claim_check $? 'a job that was stopped for the 31st time'
  again 76 0 $template; claim_check $? 'a job that lost a rank'
  again 137 0 $template; claim_check $? 'a job of which a rank was killed'
  again 76 9 $template; claim_check $? 'a job that lost a rank for the tenth time'
  claim_check "$([ "$ended" -eq 76 ]; echo $?)" "the exit code stays: $ended"
  for code in 0 1 2 65 71 74; do
    ! again $code 0 $template; claim_check $? "no job that ended with $code"
  done
  ! again 76 10 $template; claim_check $? 'no job that lost a rank for the eleventh time'
  ! again 137 10 $template; claim_check $? 'no job of which a rank was killed for the eleventh time'
done

claim_begin 'a task of an array whose range is beyond the rows ends well'
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cd "$work" || exit 99
"$sagitta" synth --n-rows 5000 --columns 8 --atoms 16 --output made --quiet
printf 'rows = made/rows.h5\ndictionary = made/dictionary.h5\ntop-s = 2\n' > encode.in
for TASK in 0 1 2; do
  ! again '' 0 encode_array.sbatch encode.in 4096 parts/
  claim_check "$ended" "task $TASK ends with $ended: $(tail -n 2 "$work/log")"
done
grep -q 'has 5000 rows, and .--row-range. is 8192:12288: this task has no rows' "$work/log"
claim_check $? "the last task says that it has no rows: $(tail -n 2 "$work/log")"
[ "$(find parts -name 'part-*.h5' | wc -l)" -eq 2 ]
claim_check $? "two parts: $(ls parts)"
"$sagitta" merge 'parts/part-*.h5' --output whole --quiet
claim_check $? 'the parts are merged to the whole'
for range in 8192: 8000:12288 12288:8192; do
  "$sagitta" encode encode.in --row-range $range --output other > "$work/log" 2>&1
  claim_check "$([ $? -eq 2 ]; echo $?)" "$range is refused: $(tail -n 1 "$work/log")"
done
claim_end

claim_begin 'tasks with --join write one file; merge.sbatch publishes it; the second does nothing'
"$sagitta" synth --n-rows 9000 --columns 8 --atoms 16 --output many --quiet
printf 'rows = many/rows.h5\ndictionary = many/dictionary.h5\ntop-s = 2\n' > join.in
merge() # WORDS...
{
  env SAGITTA="$sagitta" bash "$source/scripts/slurm/merge.sbatch" "$@" > "$work/log" 2>&1
}
! merge joined/ && ! [ -e joined ]
claim_check $? "merge is refused without a folder: $(tail -n 2 "$work/log")"
for TASK in 0 1 2; do
  if [ $TASK -eq 2 ]; then
    ! merge joined/ && grep -q 'row-range 8192:9000' "$work/log"
    claim_check $? "what is missing is named: $(tail -n 2 "$work/log")"
  fi
  ! again '' 0 encode_array.sbatch join.in 4096 joined/ --join
  claim_check "$ended" "task $TASK ends with $ended: $(tail -n 2 "$work/log")"
done
for time in first second; do
  merge joined/
  claim_check $? "the $time merge ends well: $(tail -n 2 "$work/log")"
done
grep -q 'nothing is left to merge' "$work/log"
claim_check $? "the second merge says that nothing is left: $(tail -n 2 "$work/log")"
"$sagitta" encode join.in --output once --quiet && "$sagitta" diff once joined
claim_check $? 'the result is that of one job'
merge parts/ again/ && "$sagitta" diff whole again
claim_check $? "parts are merged as before: $(tail -n 2 "$work/log")"
claim_end
echo "1..$count"
exit $status
