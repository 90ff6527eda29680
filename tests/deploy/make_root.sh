#!/bin/sh
# Makes the package, and the root folder of Debian packages that the tests beside this file install it in.
#
#   make_root.sh BUILD SOURCE
#
# The folder is made once for the same packages: it takes half a minute and the network. Exits with 77 where it
# cannot be made.
set -eu
build=$1
source=$2
for program in dpkg-shlibdeps file; do
  command -v "$program" >/dev/null || { echo "no $program (Debian packages dpkg-dev, file)" >&2; exit 77; }
done
rm -f "$build"/packages/hyperrun_*.deb
cpack --config "$build/CPackConfig.cmake" -B "$build/packages"
"$source/deploy/image/root" "$build"/packages/hyperrun_*.deb "$build/image/base"
