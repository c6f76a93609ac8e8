#!/usr/bin/env bash
# An aggregator with two workers goes away while the ranks are on their trees, in each possible way: killed, hung, or ended
# by SIGTERM. The ranks see no error, go on between themselves, and return when it is back.
#   restart_test.sh MANAGER AGGREGATOR CHAOS_RANK [RANKS [COUNT]]
set -euo pipefail
export TRIBUTARY_TEST_WORKERS=${TRIBUTARY_TEST_WORKERS:-2} TRIBUTARY_TEST_GROUPS=several TRIBUTARY_TEST_HUGE_PAGES=hidden
# shellcheck source=tests/dpdk/cluster/cluster.sh
source "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"

# come_back HOW: waits until the ranks are on the tree, and have done rounds there
come_back() {
  within 60 in_network || fail "the ranks do not get to the tree $1"
  local first
  first=$(rounds)
  within 60 at_least $((first + 3)) || fail "no rounds on the tree $1"
  alive
}
# fall_back HOW: waits until the ranks use the fallback, and have done rounds by it
fall_back() {
  within 60 by_fallback || fail "the ranks do not fall back: $1"
  local first
  first=$(rounds)
  within 60 at_least $((first + 3)) || fail "no rounds by fallback: $1"
  alive
}

come_back 'at the start'
within 20 faults_happened || fail 'no packet was sent again, or none came twice'
# With so many connections, every queue receives some, for any worker.
(($(value 'dpdk_frames_handed_over_total') > 0)) || fail 'every packet came to its own queue'
for ((i = 0; i < TRIBUTARY_TEST_WORKERS; ++i)); do
  (($(value "sessions_open{worker=\"$i\"}") > 0)) || fail "worker $i serves nobody"
done

kill -KILL "$aggregator_pid"
fall_back 'killed'
start_aggregator
come_back 'after the kill'

kill -STOP "$aggregator_pid"
fall_back 'hung'
kill -CONT "$aggregator_pid"
come_back 'after it hung'

begin=$SECONDS
kill -TERM "$aggregator_pid"
wait "$aggregator_pid" || fail "it ended with $? when it was asked to"
((SECONDS - begin <= 15)) || fail "it took $((SECONDS - begin)) s to end"
! grep -q 'did not take their last words' "$folder/aggregator.log" || fail 'children found a broken connection'
fall_back 'ended'
start_aggregator
come_back 'after it ended'

# At each of its three starts the aggregator reports each shortcoming of its device once, with the remedy.
(($(value dpdk_huge_pages) == 0 && $(value dpdk_rules_wanted) > 0 && $(value dpdk_rules_in_place) == 0)) || fail 'huge pages, or rules'
for note in "DPDK's memory is in ordinary pages.*echo [0-9]* >" 'does not take all rules for its queues (.*): packets that come to another'; do
  (($(grep -c -- "$note" "$folder/aggregator.log") == 3)) || fail "the log does not say this once at each start: $note"
done

touch "$folder/stop"
for p in "${pids[@]}"; do wait "$p" || fail 'a rank has failed'; done
printf '%d rounds in all\n' "$(rounds)"
