#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Claim: the commands of doc/scale.md, with smaller sizes, make a whole file from shards and verify
# it, on a Slurm of two nodes.  A fit that loses a rank, and then a node, continues by itself.
. "${srcdir:-.}/tests/slurm_nodes.sh"
cd "$home" || exit 99

# Run the commands of the next block of the page, with sizes that fit here.
blocks=0
block_run()
{
  blocks=$((blocks + 1))
  awk -v n=$blocks '/^```/ { on = !on; if (on) at++; next } on && at == n' \
    "$source/doc/scale.md" > page.md
  sed -e 's/131072/64/; s/top-s = 16/top-s = 4/; s/4194304/4096/; s/1048576/4096/; s/0-953/0-1/' \
    -e 's/--nodes=[0-9]*/--nodes=2/; s/--ntasks-per-node=[0-9]*/--ntasks-per-node=1/' \
    page.md > "block-$blocks"
  # shellcheck disable=SC1090 # variables of a block are of use in the next
  . "./block-$blocks" > "block-$blocks.log" 2>&1
  check $? "the $(grep -c . "block-$blocks") lines of block $blocks run"
}
said() # BLOCK TEXT
{
  grep -q "$2" "block-$1.log"
  told=$?
  check $told "the output of block $1 has '$2'"
  [ $told -eq 0 ] || explain "block-$1.log"
}

# What a user of the page has: rows, templates whose places are edited, and the program.
mkdir rows
for i in 1 2; do
  "$sagitta" synth --n-rows 4096 --columns 32 --atoms 64 --top-s 4 --seed $i --output rows/$i &&
    mv rows/$i/rows.h5 rows/$i.h5 && rm -r "rows/$i"
done > synth.log 2>&1
check $? "shards were made"
for template in job.sbatch encode_array.sbatch merge.sbatch; do
  sed -e 's/^#SBATCH --nodes=.*/#SBATCH --nodes=2/' -e 's/--cpus-per-task=.*/--cpus-per-task=1/' \
    -e 's/--ntasks-per-node=.*/--ntasks-per-node=1/' -e 's/--time=.*/--time=30/' \
    "$source/scripts/slurm/$template" > $template
done
sed -i 's/--nodes=.*/--nodes=1/' encode_array.sbatch
PATH=$(dirname "$sagitta"):$PATH
export PATH OMPI_MCA_btl=self,tcp OMPI_MCA_rmaps_base_oversubscribe=1

cluster_start
check $? "two nodes are idle"
block_run
printf 'tolerance = 0\nsweeps = 2000\n' >> fit.in # so that it runs until a node is lost

block_run
said 2 '^memory  *up to'
said 2 '^disk '
at_work() # SWEEP
{
  grep -q "sweep *$1:" "sagitta-$fit.log" 2> /dev/null
}
restarts() # COUNT
{
  scontrol show job "$fit" | grep -q "Restarts=$1 "
}
resumed() # COUNT
{
  [ "$(grep -c 'resume  after sweep' "sagitta-$fit.log")" = "$1" ]
}
# The job is held, as in test_slurm.sh.  On a slow machine it may run again before it is released.
ready() # COUNT
{
  nodes_idle || resumed "$1"
}
again() # COUNT
{
  wait_for 300 ready "$1" && sleep 3 && scontrol update JobId="$fit" StartTime=now
  wait_for 300 resumed "$1"
  check $? "restart $1 of the fit continues"
}
wait_for 300 at_work 3
check $? "the fit works on two nodes"
for rank in $(scontrol listpids "$fit" s2 2> pids.log | awk 'NR > 1 { print $1 }'); do
  case $(readlink "/proc/$rank/exe") in "$sagitta") kill -KILL "$rank" && break ;; esac
done
wait_for 300 restarts 1
check $? "a rank was killed, and the job is to run again"
again 1
scontrol update NodeName=s2 State=DOWN Reason=lost && wait_for 300 restarts 2
check $? "a node was lost, and the job is to run again"
# From here on the fit may end: it gets 30 more sweeps, and a plain fit the same number in all.
last=$(sed -n 's/.*sweep *\([0-9][0-9]*\):.*/\1/p' "sagitta-$fit.log" | sort -n | tail -n 1)
last=$((last + 30))
sed -i "s/^sweeps = .*/sweeps = $last/" fit.in
scontrol update NodeName=s2 State=RESUME
again 2
wait_for 300 queue_empty && at_work "$last"
check $? "the fit ended after the given number of sweeps"
"$sagitta" fit fit.in --output plain > plain.log 2>&1
check $? "a plain fit of the same number of sweeps ended well"
"$sagitta" diff plain dict > diff.log 2>&1
same=$?
check $same "the fit's result equals the uninterrupted one, bit for bit"
[ $same -eq 0 ] || explain "sagitta-$fit.log" slurmctld.log diff.log

block_run
said 3 '^memory '
wait_for 300 queue_empty
check $? "all jobs left the queue"
"$sagitta" encode encode.in --output whole-plain > encode.log 2>&1
"$sagitta" diff whole-plain/supports.h5 whole/supports.h5 > diff.log 2>&1
same=$?
check $same "the merged file equals the result of one plain job, bit for bit"
grep -q '/supports/indices' slurm-*.out
verified=$?
check $verified "the merged file was verified"
[ $((same + verified)) -eq 0 ] || explain block-3.log slurm-*.out sagitta-*.log diff.log
echo "1..$count"
