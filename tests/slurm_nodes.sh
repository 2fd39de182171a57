# SPDX-License-Identifier: BSD-3-Clause
# For tests of Slurm, which source this file: starts two nodes on this machine, and has checks that
# print TAP.  All files are in one temporary folder.  Processes that it started are ended by their
# ids.
PATH=$PATH:/usr/sbin:/sbin
source=$(cd "${srcdir:-.}" && pwd)
sagitta=${builddir:-.}/sagitta
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

skip_all()
{
  echo "1..0 # SKIP $1"
  exit 0
}
[ "$(id -u)" = 0 ] || skip_all "two Slurm nodes on one machine need root"
for program in munged slurmctld slurmd sbatch squeue; do
  command -v $program > /dev/null || skip_all "$program is not installed"
done

home=$(mktemp -d /tmp/sagitta-slurm.XXXXXX)
pids=
stop()
{
  for pid in $pids; do
    kill "$pid" 2> /dev/null
    wait "$pid" 2> /dev/null
  done
  rm -rf "$home"
}
trap stop EXIT
trap 'exit 1' INT TERM HUP

count=0
check() # STATUS CLAIM
{
  count=$((count + 1))
  if [ "$1" -eq 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; fi
}
explain() # FILES
{
  tail -n 30 "$@" 2> /dev/null | sed 's/^/# /'
}

configure()
{
  port=$((20000 + $$ * 4 % 12000))
  host=$(hostname -s)
  mkdir "$home/state" "$home/s1" "$home/s2"
  (umask 077 && head -c 1024 /dev/urandom > "$home/munge.key")
  echo 'CgroupPlugin=cgroup/v1' > "$home/cgroup.conf" # otherwise slurmd needs a cgroup file system
  # Jobs that begin and end at the same time disturb each other in one folder of Open MPI's
  # sessions.
  cat > "$home/prolog" << END
#!/bin/sh
echo "export OMPI_MCA_orte_tmpdir_base=$home/mpi-\$SLURM_JOB_ID"
END
  chmod +x "$home/prolog"
  cat > "$home/slurm.conf" << END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$home/munge.socket
StateSaveLocation=$home/state
SlurmdSpoolDir=$home/%n
SlurmctldPidFile=$home/slurmctld.pid
SlurmdPidFile=$home/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TaskProlog=$home/prolog
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault=none
NodeName=s1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=2
NodeName=s2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=2
PartitionName=all Nodes=s1,s2 Default=YES State=UP
END
  export SLURM_CONF="$home/slurm.conf"
}

spawn() # NAME COMMAND...
{
  name=$1
  shift
  "$@" > "$home/$name.log" 2>&1 &
  pids="$! $pids"
}

wait_for() # SECONDS COMMAND...: returns 0 if the command succeeds in time
{
  tries=$(($1 * 4))
  shift
  while [ $tries -gt 0 ]; do
    "$@" && return 0
    sleep 0.25
    tries=$((tries - 1))
  done
  return 1
}
nodes_idle() { [ "$(sinfo -h -N -o %t 2> "$home/sinfo.log" | grep -c '^idle$')" = 2 ]; }
queue_empty() { queue=$(squeue -h 2> "$home/squeue.log") && [ -z "$queue" ]; }

cluster_start()
{
  configure
  spawn munged munged --foreground --force --key-file="$home/munge.key" \
    --socket="$home/munge.socket" --pid-file="$home/munged.pid" \
    --log-file="$home/munge.log" --seed-file="$home/munge.seed"
  wait_for 300 test -S "$home/munge.socket"
  spawn slurmctld slurmctld -D
  spawn slurmd-s1 slurmd -D -N s1
  spawn slurmd-s2 slurmd -D -N s2
  wait_for 300 nodes_idle
}
