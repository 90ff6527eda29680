#!/bin/bash
# One attempt at a run, that goes on from the last checkpoint of the attempts before it.
#
#   attempt.sh FOLDER JOB [option of hyperrun ...]
#
# Attempt N has the run directory FOLDER/attempt-N. RESUME names the checkpoint that the first one starts from.
# HYPERRUN is the program, when it is not in PATH.
set -u

folder=${1:?attempt.sh FOLDER JOB [option of hyperrun ...]}
job=${2:?attempt.sh FOLDER JOB [option of hyperrun ...]}
shift 2

# last_checkpoint: the one with most steps behind it, or nothing. Checkpoints appear whole or not at all.
last_checkpoint() {
  find "$folder" -path '*/attempt-*/checkpoints/step-*' -type d -prune -regex '.*/step-[0-9]+' 2>/dev/null |
    sed 's/.*step-\([0-9]*\)$/\1 &/' | sort -n | tail -n 1 | cut -d ' ' -f 2-
}

mkdir -p "$folder" || exit
attempt=0
while [ -e "$folder/attempt-$attempt" ]; do attempt=$((attempt + 1)); done
from=$(last_checkpoint)
from=${from:-${RESUME:-}}
echo "== attempt $attempt, from ${from:-the start}"
exec "${HYPERRUN:-hyperrun}" "$job" ${from:+--resume "$from"} --run-dir "$folder/attempt-$attempt" "$@"
