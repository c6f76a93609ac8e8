#!/bin/sh
# Fails when libtributary.so defines a dynamic symbol outside of its API, or lacks a symbol that tributary.h declares.
#   symbols_test.sh LIBRARY HEADER
set -eu
library=$1 header=$2
defined=$(nm -D --defined-only "$library" | awk '$3 !~ /^TRIBUTARY_0/ { sub(/@.*/, "", $3); print $3 }')
others=$(printf '%s\n' "$defined" | grep -v '^tributary_' || true)
test -z "$others" || { echo "symbols that leak:"; printf '%s\n' "$others"; exit 1; }
for name in $(grep -o 'tributary_[a-z_]*(' "$header" | tr -d '(' | sort -u); do
  printf '%s\n' "$defined" | grep -qx "$name" || { echo "$name is declared but not exported"; exit 1; }
done
echo "$(printf '%s\n' "$defined" | wc -l) symbols, all of the API"
