#!/usr/bin/env bash
# Installs the programs of a build, and runs a job over RDMA with them: the installed aggregators load their module from
# the place where a package puts it, and carry every byte of the job.
#   installed_test.sh BUILD CMAKE VM
set -euo pipefail
build=$1 cmake=$2 vm=$3
if [[ ${4:-} != inside ]]; then
  tree=$(mktemp -d)
  trap 'rm -rf "$tree"' EXIT
  for component in tributary-manager tributary-aggregator tributary-client tributary-tools; do
    "$cmake" --install "$build" --prefix "$tree" --component "$component" >/dev/null
  done
  "$vm" --timeout 400 --hosts 2 --memory 3072 -- "$0" "$tree" - - inside
  exit
fi

tree=$build
program=$tree/bin/tributary
out=$(mktemp)
export TRIBUTARY_TRANSPORT=verbs TRIBUTARY_LOCAL=off TRIBUTARY_PATH=in-network TRIBUTARY_HANG_AFTER=20000
"$program" run --ranks 2 --aggregators 1 --levels 1 -- "$program" perf all_reduce -b 8 -e 131072 -f 16384 -n 20 -w 0 -c 1 >"$out" 2>&1 &
running=$!
mapped=
while kill -0 "$running" 2>/dev/null; do
  for aggregator in $(pgrep -x tributary-aggre); do
    # The process may have ended: then the file cannot be read.
    file=$(sed -n 's|.* \(/.*tributary-aggregator-verbs\.so\)$|\1|p' "/proc/$aggregator/maps" 2>/dev/null | head -n 1) || true
    mapped=${file:-$mapped}
  done
  sleep 0.1
done
status=0
wait "$running" || status=$?
cat "$out"
((status == 0)) || { echo "status $status"; exit 1; }
[[ $mapped == "$tree"/* ]] || { echo "the aggregator has mapped '$mapped', no module below $tree"; exit 1; }
echo "the aggregator has loaded $mapped"
grep -q 'in-network [1-9][0-9]* (100.0 %)' "$out" || { echo "bytes went another way"; exit 1; }
