#!/bin/sh
# Fails when the plugin lacks a table, has a table of another size than NCCL reads, or exports another symbol.
#   symbols_test.sh LIBRARY
set -eu
library=$1
expected='ncclCollNetPlugin_v6 78
ncclCollNetPlugin_v7 78
ncclCollNetPlugin_v8 88
ncclCollNetPlugin_v9 90
ncclCollNetPlugin_v10 90
ncclCollNetPlugin_v11 98
ncclCollNetPlugin_v12 98
ncclNetPlugin_v6 88
ncclNetPlugin_v7 98
ncclNetPlugin_v8 98
ncclNetPlugin_v9 a0
ncclNetPlugin_v10 a0
ncclNetPlugin_v11 b0
ncclNetPlugin_v12 b0
ncclTunerPlugin_v2 20
ncclTunerPlugin_v3 20
ncclTunerPlugin_v4 20
ncclTunerPlugin_v5 20
ncclTunerPlugin_v6 28'
found=$(nm -D -S --defined-only "$library" | awk '{ sub(/^0+/, "", $2); print $4, $2 }' | sort)
wanted=$(printf '%s\n' "$expected" | sort)
if [ "$found" != "$wanted" ]; then
  printf 'wanted:\n%s\n\nfound:\n%s\n' "$wanted" "$found"
  exit 1
fi
echo "$(printf '%s\n' "$found" | wc -l) tables, nothing else"
