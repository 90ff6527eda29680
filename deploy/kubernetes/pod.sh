#!/bin/bash
# The task of a pod of statefulset.yaml: sshd serves the first pod, which starts the run on all of them.
#
# Environment: HOSTS and SLOTS, how many pods there are and how many devices each takes; JOB; OPTIONS of hyperrun, in
# words; RUNS, the folder of run directories, which outlives the pod; SERVICE, the headless service's name. The pod's
# own name is STATEFULSET-NUMBER.
set -u

name=$(hostname)
number=${name##*-}
set_name=${name%-*}
runs=${RUNS:-/runs}
share=${SHARE:-/usr/share/hyperrun/deploy}

/usr/sbin/sshd -De -f /etc/hyperrun-sshd_config &
sshd=$!
run=
stop() {
  # hyperrun ends its ranks in all pods, and sshd must last until then.
  [ -z "$run" ] || { kill -TERM "$run" 2>/dev/null && wait "$run"; }
  kill "$sshd" 2>/dev/null
  exit 143
}
trap stop TERM INT

write_hosts() {
  local i
  for ((i = 0; i < HOSTS; i++)); do echo "$set_name-$i.$SERVICE slots=$SLOTS"; done >"$runs/hosts"
}

# wait_for_hosts: until sshd of each pod lets us in. What still lacks is told every half minute.
wait_for_hosts() {
  local i started=$SECONDS told=$SECONDS
  for ((i = 0; i < HOSTS; i++)); do
    until ssh -o ConnectTimeout=3 "$set_name-$i.$SERVICE" true 2>/tmp/ssh-says; do
      if [ $((SECONDS - told)) -ge 30 ]; then
        echo "waiting for $set_name-$i since $((SECONDS - started)) s: $(tail -n 1 /tmp/ssh-says)" >&2
        told=$SECONDS
      fi
      sleep 1
    done
  done
}

# start_run: begins an attempt, unless one has ended well. A StatefulSet starts an ended pod again, so the first pod
# stays, and says that the run is over.
start_run() {
  if [ -e "$runs/done" ]; then
    echo "the run is over: $(cat "$runs/done"); remove $runs/done for another"
    return
  fi
  write_hosts
  wait_for_hosts
  # shellcheck disable=SC2086 # OPTIONS is a list of words
  "$share/attempt.sh" "$runs/attempts" "$JOB" --hostfile "$runs/hosts" ${OPTIONS:-} &
  run=$!
  wait "$run"
  local status=$?
  run=
  [ "$status" -eq 0 ] || { kill "$sshd"; exit "$status"; }
  date --iso-8601=seconds >"$runs/done"
}

[ "$number" -ne 0 ] || start_run
wait "$sshd"
