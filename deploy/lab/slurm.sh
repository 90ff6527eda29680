#!/bin/bash
# A Slurm cluster on one machine, of the hosts that netns.sh makes. Needs root, and Debian's slurm-wlm and munge.
#
#   deploy/lab/slurm.sh up N          a controller on hr-host0, nodes hr-host1 .. hr-hostN of four cores each
#   deploy/lab/slurm.sh run COMMAND   run a command (sbatch, srun, salloc) on hr-host0
#   deploy/lab/slurm.sh down          end it, and remove the hosts
#
# A munged of its own with a key of its own serves the cluster; the machine's, if there is one, is left alone. `up`
# exits with 77 where it cannot work.
set -u

here=$(cd "$(dirname "$0")" && pwd)
hosts_state=${HYPERRUN_NETNS_STATE:-/tmp/hyperrun-netns}
state=${HYPERRUN_SLURM_STATE:-/tmp/hyperrun-slurm}
export SLURM_CONF=$state/slurm.conf

cannot() {
  echo "a Slurm cluster cannot be made: $*" >&2
  exit 77
}

# configure N: slurm.conf, and the files that it takes from the same folder. Processes are found by /proc, not by
# control groups, which a container may lack. A requeued job waits for cred_expire, in seconds.
configure() {
  local nodes="hr-host[1-$1]"
  [ "$1" -gt 1 ] || nodes=hr-host1
  cat >"$SLURM_CONF" <<CONF
ClusterName=lab
SlurmctldHost=hr-host0
AuthType=auth/munge
AuthInfo=socket=$state/munge.socket,cred_expire=10
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$state/state
SlurmdSpoolDir=$state/spool/%n
SlurmctldPidFile=$state/slurmctld.pid
SlurmdPidFile=$state/slurmd.%n.pid
SlurmctldLogFile=$state/slurmctld.log
SlurmdLogFile=$state/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,batch_sched_delay=0
ReturnToService=2
MpiDefault=none
SlurmdParameters=config_overrides
KillWait=2
SlurmdTimeout=10
JobRequeue=1
NodeName=$nodes CPUs=4 CoresPerSocket=4 RealMemory=2000 State=UNKNOWN
PartitionName=main Nodes=$nodes Default=YES MaxTime=60 State=UP
CONF
  echo "PMIxCliTmpDirBase=$state/pmix" >"$state/mpi.conf"
  echo "CgroupPlugin=cgroup/v1" >"$state/cgroup.conf"
}

start_munged() {
  head -c 128 /dev/urandom >"$state/munge.key" && chmod 400 "$state/munge.key"
  munged --force --key-file="$state/munge.key" --socket="$state/munge.socket" --pid-file="$state/munged.pid" \
    --log-file="$state/munged.log" --seed-file="$state/munge.seed" 2>/dev/null
}

# wait_for_nodes N: until all of them are idle, at most 20 s.
wait_for_nodes() {
  for ((i = 0; i < 100; i++)); do
    [ "$(run sinfo --noheader --Node --states=idle --format=%N 2>/dev/null | wc -l)" -eq "$1" ] && return 0
    sleep 0.2
  done
  return 1
}

up() {
  local count=$1
  for program in slurmctld slurmd munged; do
    command -v "$program" >/dev/null || cannot "no $program (Debian packages slurm-wlm, munge)"
  done
  down
  "$here/netns.sh" up $((count + 1)) || exit $?
  mkdir -p "$state/state" "$state/spool" "$state/pmix"
  configure "$count"
  start_munged || { down; cannot "munged does not start"; }
  "$hosts_state/rsh" hr-host0 "SLURM_CONF=$SLURM_CONF slurmctld"
  for ((i = 1; i <= count; i++)); do
    # PMIx of one node must not see another's sockets, and all nodes share this machine's files.
    mkdir -p "$state/pmix.$i" "$state/spool/hr-host$i"
    "$hosts_state/rsh" "hr-host$i" "mount --bind $state/pmix.$i $state/pmix && SLURM_CONF=$SLURM_CONF slurmd"
  done
  wait_for_nodes "$count" || { tail -n 5 "$state"/*.log >&2; down; cannot "its nodes did not become idle"; }
}

run() { "$here/netns.sh" run env -u OMPI_MCA_plm_rsh_agent -u OMPI_MCA_plm_rsh_no_tree_spawn "$@"; }

down() {
  for file in "$state"/slurmctld.pid "$state"/slurmd.*.pid "$state"/munged.pid; do
    [ -s "$file" ] && kill "$(cat "$file")" 2>/dev/null
  done
  "$here/netns.sh" down
  rm -rf "$state"
}

case ${1:-} in
  up) up "${2:?how many nodes}" ;;
  run) shift && run "$@" ;;
  down) down ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
