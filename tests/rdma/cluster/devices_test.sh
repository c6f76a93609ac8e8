#!/usr/bin/env bash
# The test removes devices during operations whose ranks live on: every value must be right, and no rank may get an
# error.
#   devices_test.sh TRIBUTARY
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
program=$1
[[ -n ${RDMA_VIRTUAL:-} ]] || { echo "this machine's devices are not ours to take away"; exit 77; }
export TRIBUTARY_TRANSPORT=verbs TRIBUTARY_LOCAL=off TRIBUTARY_PATH=auto TRIBUTARY_TUNING=off TRIBUTARY_LOG=info
out=$(mktemp)
pairs_of() { rdma resource show qp | grep -c "link $1/.*type RC" || true; }

# devices_of prints the devices that rank $1 uses; $2 is the device to remove, and $3 the number of aggregators (0: only
# ranks).
declare -A devices_of
as_rank='export TRIBUTARY_RDMA_DEVICES=$(printenv DEVICES_OF_$LOCAL_RANK); exec "$@"'
lose() {
  local device=$1 aggregators=$2 ranks=4 rank
  for ((rank = 0; rank < ranks; ++rank)); do export "DEVICES_OF_$rank=${devices_of[$rank]}"; done
  echo "== $device goes, $aggregators aggregators"
  "$program" run --ranks "$ranks" --aggregators "$aggregators" --levels 1 -- \
    bash -c "$as_rank" rank "$program" perf all_reduce -b 16 -e 1M -f 256 -n "${OPERATIONS:-60}" -w 1 -c 1 > "$out" 2>&1 &
  local running=$! wait
  for ((wait = 0; wait < 900; ++wait)); do
    if (($(pairs_of "$device") >= 1)) && grep -q '^ *16 ' "$out"; then break; fi
    kill -0 "$running" 2>/dev/null || break
    sleep 0.1
  done
  echo "queue pairs on $device: $(pairs_of "$device")"
  rdma link delete "$device" >/dev/null 2>&1 & # the command returns when every process that has opened the device has
                                               # ended
  local deleting=$! status=0
  wait "$running" || status=$?
  cat "$out"
  ((status == 0)) || { echo "status $status"; exit 1; }
  grep -q 'over TCP from now on' "$out" || { echo "no connection went the second way: the device went too late"; exit 1; }
  wait "$deleting" || true
  rdma link add "$device" type rxe netdev "host${device#rxe}"
}

for aggregators in 0 1; do
  devices_of=([0]=rxe1 [1]=rxe2 [2]=rxe3 [3]=rxe4)
  lose rxe3 "$aggregators" # a rank's only device
  lose rxe1 "$aggregators" # rank 0's only device
  devices_of=([0]=rxe1 [1]=rxe2 [2]=rxe3,rxe5 [3]=rxe4)
  lose rxe3 "$aggregators" # the first of two devices
  # New trees use the second device.
  ((aggregators == 0)) || grep -q '^# Failovers .*returns [1-9]' "$out" || { echo "the group has not returned to trees"; exit 1; }
done
