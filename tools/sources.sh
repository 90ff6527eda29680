# shellcheck shell=sh
# Sourced in the repository's root: sources lists our C++ files, one a line.
sources() {
  find runtime memory collectives launcher tests bench -name '*.h' -o -name '*.cc' | sort
}
