#!/bin/sh
# Installs all programs and libraries. Fails when one of them has debug information or names no debug file, or when a
# library exports a name other than those of the public API and those that NCCL, MPI programs, JAX and Slurm look for.
#   installed_test.sh BUILD_DIRECTORY CMAKE
set -eu
build=$1 cmake=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/prefix" >"$work/log" 2>&1 || { tail -n 20 "$work/log"; exit 1; }
find "$work/prefix" -type f >"$work/files"
checked=0
while read -r file; do
  readelf --file-header "$file" >"$work/header" 2>/dev/null || continue
  grep -q 'Type:.*\(DYN\|EXEC\)' "$work/header" || continue  # objects and archives are not programs
  sections=$(readelf --sections --wide "$file")
  case $sections in
    *.debug_info*) echo "$file has debug information"; exit 1 ;;
    *.gnu_debuglink*) ;;
    *) echo "$file names no debug file"; exit 1 ;;
  esac
  case $file in
    *.so*)
      others=$(nm -D --defined-only "$file" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
        grep -Ev '^(tributary_|nccl(Net|CollNet|Tuner)Plugin_v[0-9]+$|slurm_spank_|(spank_)?plugin_(name|type|version)$|(MPI_[A-Z][a-z_]+|MPIX_[A-Z][a-z_]+_init|mpix?_[a-z0-9_]+_|ompix?_[a-z_]+_f)$|MPIX?ABI_|mpiabi_version_|mpiwrapper_)' || true)
      test -z "$others" || { echo "$file exports:"; printf '%s\n' "$others"; exit 1; }
      ;;
  esac
  checked=$((checked + 1))
done <"$work/files"
test "$checked" -gt 0 || { echo "nothing was installed"; exit 1; }
test -n "$(find "$work/prefix" -name 'libtributary.so.*')" || { echo "libtributary.so was not installed"; exit 1; }
"$cmake" --install "$build" --prefix "$work/prefix" --component tributary-debug >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
test -n "$(find "$work/prefix" -name 'libtributary.so.*.debug')" || { echo "the debug files were not installed"; exit 1; }
echo "$checked programs and libraries without debug information"
