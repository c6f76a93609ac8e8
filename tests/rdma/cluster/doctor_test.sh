#!/usr/bin/env bash
# `tributary doctor --measure` measures the ways to two aggregators over RDMA.
#   doctor_test.sh TRIBUTARY
set -euo pipefail
program=$1
export TRIBUTARY_TRANSPORT=verbs
out=$(mktemp)
"$program" run --ranks 1 --aggregators 2 --levels 1 -- "$program" doctor --measure > "$out" 2>&1 || true # other findings may be bad
grep -A2 '^measured' "$out" || { cat "$out"; exit 1; }
for figure in 'rate to .*bit/s there' 'round trip to .* at least'; do
  (($(grep -cE "^measured +$figure" "$out") == 2)) || { echo "not two lines as: $figure"; cat "$out"; exit 1; }
done
if grep -E '^measured +(way|loss)' "$out"; then echo 'a way that was not measured, or a loss that RDMA does not tell'; exit 1; fi
