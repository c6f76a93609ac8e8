#!/bin/sh
# Installs the client library from a build directory, and builds a C and a C++17 program against it, with CMake and with
# pkg-config.
#   install_test.sh BUILD_DIRECTORY CONSUMER_SOURCES CMAKE
set -eu
build=$1 sources=$2 cmake=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TRIBUTARY_LOG=off

"$cmake" --install "$build" --component tributary-client --prefix "$work/prefix" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
library=$(find "$work/prefix" -name libtributary.so)
libdir=$(dirname "$library")
for file in include/tributary/tributary.h include/tributary/tributary.hpp; do
  test -f "$work/prefix/$file" || { echo "$file was not installed"; exit 1; }
done
# Move the installation, as a package may be moved: no file in it may hold its first path.
mv "$work/prefix" "$work/moved"
libdir=$work/moved${libdir#"$work/prefix"}
export LD_LIBRARY_PATH="$libdir"

"$cmake" -S "$sources" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/moved" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$cmake" --build "$work/cmake" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$work/cmake/consumer_c"
"$work/cmake/consumer_cpp"
echo "built with CMake"

if ! command -v pkg-config >/dev/null; then
  echo "pkg-config is not installed: that half was not tested"
  exit 0
fi
export PKG_CONFIG_PATH="$libdir/pkgconfig"
flags=$(pkg-config --cflags --libs tributary)
# The shell must split the words of $flags.
${CC:-cc} -std=c99 -Wall -Wextra -pedantic -Werror "$sources/consumer.c" $flags -o "$work/c"
${CXX:-c++} -std=c++17 -Wall -Wextra -pedantic -Werror "$sources/consumer.cpp" $flags -o "$work/cpp"
"$work/c"
"$work/cpp"
echo "built with pkg-config, version $(pkg-config --modversion tributary)"
