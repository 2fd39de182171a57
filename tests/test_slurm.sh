#!/bin/sh
# Claim: the Slurm templates give the bits of a plain run, also if a job is stopped and run again.
# The test starts two nodes on this machine.
. "${srcdir:-.}/tests/slurm_nodes.sh"

cd "$home" || exit 99
rows=$source/input/minilm-l3-kjv-8k.h5
"$sagitta" seed --rows "$rows" --atoms 256 --center --output dictionary > seed.log 2>&1
check $? "a dictionary was made"
cat > job.in << END
rows = $rows
dictionary = dictionary/dictionary.h5
top-s = 8
rounds = 2
output = slurm
END
"${MPIEXEC:-mpirun}" --oversubscribe --bind-to none -n 1 "$sagitta" encode job.in --output plain \
  > plain.log 2>&1
check $? "a plain run ended well"

cluster_start
check $? "two nodes are idle"
# The shared-memory transport does not know that two "nodes" are one machine.
export OMPI_MCA_btl=self,tcp OMPI_MCA_rmaps_base_oversubscribe=1 SAGITTA="$sagitta"
sbatch --parsable --ntasks-per-node=2 --cpus-per-task=1 --time=2 --output=job.log \
  "$source/scripts/slurm/job.sbatch" encode job.in --block 1000 > sbatch.log 2>&1
check $? "sbatch takes the template"
wait_for 100 queue_empty
check $? "the job of the template left the queue"
[ "$(grep -c 'on s\[1-2\]: 4 ranks' job.log)" = 1 ]
check $? "four ranks ran on two nodes"
"$sagitta" diff plain/supports.h5 slurm/supports.h5 > diff.log 2>&1
same=$?
check $same "the job's result equals the plain one, bit for bit"
[ $same -eq 0 ] || explain ./*.log

# An array of jobs encodes the rows in parts, and a job that depends on it joins them.
job=$(sbatch --parsable --array=0-1 --ntasks-per-node=1 --cpus-per-task=1 --time=2 \
  --output=part-%a.log "$source/scripts/slurm/encode_array.sbatch" job.in 4096 parts/)
sbatch --parsable --dependency="afterok:$job" --output=merge.log \
  "$source/scripts/slurm/merge.sbatch" parts/ whole/ > sbatch.log 2>&1
check $? "sbatch takes an array, and a merge that waits for it"
wait_for 100 queue_empty
check $? "the array and the merge left the queue"
"$sagitta" diff plain/supports.h5 whole/supports.h5 > diff.log 2>&1
same=$?
check $same "the merged parts equal the plain result, bit for bit"
[ $same -eq 0 ] || explain part-*.log merge.log diff.log

# USR1 to the batch script reaches the ranks, which stop after a sweep with 75.  Then the script
# puts the job back into the queue.  When the job runs again, it continues.
"$sagitta" synth --n-rows 4096 --columns 32 --atoms 96 --top-s 4 --output made > synth.log 2>&1
cat > fit.in << END
rows = made/rows.h5
atoms = 96
top-s = 4
rounds = 4
sweeps = 150
tolerance = 0
output = fit
END
"$sagitta" fit fit.in --output fit-plain > fit-plain.log 2>&1
check $? "a plain fit ended well"
cat > train.in << END
rows = made/rows.h5
atoms = 96
top-s = 4
epochs = 2
output = train
END
"$sagitta" train train.in --output train-plain > train-plain.log 2>&1
check $? "a plain train ended well"
# At the same time a chain of three jobs runs.  The second one gets USR1 too; the third waits for
# it.
cat > encode.in << END
rows = made/rows.h5
dictionary = made/dictionary.h5
top-s = 4
output = chain/encode
END
cat > refit.in << END
rows = made/rows.h5
dictionary = made/dictionary.h5
supports = chain/encode/supports.h5
sweeps = 250
output = chain/refit
END
cat > terminal.in << END
rows = made/rows.h5
dictionary = chain/refit/dictionary.h5
supports = chain/refit/supports.h5
output = chain/terminal
END
"$sagitta" encode encode.in --output plain-chain/encode > chain-plain.log 2>&1 &&
  "$sagitta" refit refit.in --supports plain-chain/encode --output plain-chain/refit --threads 1 \
    >> chain-plain.log 2>&1 &&
  "$sagitta" terminal terminal.in --dictionary plain-chain/refit --supports plain-chain/refit \
    --output plain-chain/terminal >> chain-plain.log 2>&1
check $? "encode, refit and terminal ended well, one after another"
at_work() # LOG SWEEP
{
  grep -q "sweep *$2" "$1" 2> /dev/null
}
restarted()
{
  for number in "$job" "$refit"; do
    scontrol show job "$number" | grep -q 'Restarts=1' || return 1
  done
}
queued()
{
  [ "$(squeue -h -j "$job,$encode,$train,$refit,$terminal" -o %T 2> squeue.log | sort | uniq -c |
    tr -s ' ')" = " 5 PENDING" ] && nodes_idle
}
mkdir stopped trained && touch stopped/STOP trained/STOP
train=$(sbatch --parsable --nodes=1 --ntasks-per-node=1 --cpus-per-task=1 --time=5 \
  --output=train.log "$source/scripts/slurm/job.sbatch" train train.in --output trained)
encode=$(sbatch --parsable --nodes=1 --ntasks-per-node=1 --cpus-per-task=1 --time=5 \
  --output=encode.log "$source/scripts/slurm/job.sbatch" encode job.in --output stopped)
job=$(sbatch --parsable --ntasks-per-node=1 --cpus-per-task=1 --time=5 --output=life.log \
  "$source/scripts/slurm/job.sbatch" fit fit.in)
one="--nodes=1 --ntasks-per-node=1 --cpus-per-task=1 --time=5"
ENCODE="$one --output=chain-encode.log" REFIT="$one --output=chain-refit.log" \
  TERMINAL="$one --output=chain-terminal.log" \
  sh "$source/scripts/slurm/chain" encode.in refit.in terminal.in > chain.log 2>&1
check $? "sbatch takes the chain"
# shellcheck disable=SC2046 # three numbers
set -- $(cat chain.log)
refit=$2 terminal=$3
wait_for 60 at_work life.log 3
check $? "a fit runs on two nodes"
scancel --batch --signal=USR1 "$job"
wait_for 60 at_work chain-refit.log 2
check $? "the chain's refit runs"
scancel --batch --signal=USR1 "$refit"
wait_for 60 restarted
again=$?
check $again "after USR1 the ranks of both jobs stop after a sweep, and the jobs wait to run again"
[ "$(grep -c 'stopped by a signal' life.log)" = 1 ] && [ ! -e fit/supports.h5 ]
check $? "the fit stopped before its end"
# Slurm holds a job that is run again for two minutes, because a node cannot start a job that it is
# still ending.  Here it is held until the nodes have ended it, and some seconds longer, because
# Slurm's credential for the next run must be newer than that of the last one.
wait_for 60 queued
check $? "both jobs, and those that wait for them, are in the queue, and the nodes are free"
sleep 3
rm stopped/STOP trained/STOP
scontrol update JobId="$job" StartTime=now
scontrol update JobId="$train" StartTime=now
scontrol update JobId="$encode" StartTime=now
scontrol update JobId="$refit" StartTime=now
wait_for 200 queue_empty
check $? "all jobs ran to their ends"
[ "$(grep -c 'resume  after sweep' life.log)" = 1 ]
check $? "the fit continued from where it had stopped"
"$sagitta" diff fit-plain fit > fit-diff.log 2>&1
same=$?
check $same "the fit's result equals the uninterrupted one, bit for bit"
[ $same -eq 0 ] || explain life.log slurmctld.log fit-diff.log
[ "$(grep -c 'stopped by .*STOP' encode.log)" = 1 ] && grep -q 'resume  after 4096 of' encode.log
check $? "an encode that a file stopped ran again, and continued"
"$sagitta" diff plain/supports.h5 stopped/supports.h5 > encode-diff.log 2>&1
same=$?
check $same "the encode's result equals the plain one, bit for bit"
[ $same -eq 0 ] || explain encode.log encode-diff.log
[ "$(grep -c 'stopped by .*STOP' train.log)" = 1 ] && grep -q 'resume  after step' train.log &&
  "$sagitta" diff train-plain trained > train-diff.log 2>&1
same=$?
check $same "a train that a file stopped continued, to the bits of the plain one"
[ $same -eq 0 ] || explain train.log train-diff.log
[ "$(grep -c 'resumed after sweep' chain-refit.log)" = 1 ]
check $? "the chain's refit continued from where it had stopped"
for what in encode refit terminal; do
  "$sagitta" diff plain-chain/$what chain/$what || break
done > chain-diff.log 2>&1
[ -e chain/terminal/terminal.h5 ] && [ ! -s chain-diff.log ]
same=$?
check $same "the results of the chain's three jobs equal those of plain runs, bit for bit"
[ $same -eq 0 ] || explain chain*.log
echo "1..$count"
