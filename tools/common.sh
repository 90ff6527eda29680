# shellcheck shell=sh
# Shared by setup and test: packages, the corpus, tokenizers, the build. Sourced, with the repository's root as the
# working directory.

say() { printf '== %s\n' "$*"; }

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "not root and no sudo here; as root, run: $*"
  fi
}

installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# install_packages KIND: installs the packages of KIND in tools/packages.txt that this machine lacks.
install_packages() {
  command -v apt-get >/dev/null || die "no apt-get here: install what tools/packages.txt names by other means"
  missing=
  for package in $(sed -n "s/^$1 //p" tools/packages.txt); do
    installed "$package" || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  say "installing:$missing"
  as_root apt-get update -q || die "apt-get update failed: is there a network?"
  # shellcheck disable=SC2086 # a list of words
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $missing ||
    die "apt-get install failed for:$missing"
}

# Sums (tools/arithmetic), and the text that the other example jobs train on: the King James Bible of Debian's bible-kjv (4 MB, public
# domain), one verse a line, without references. The file is complete or absent.
CORPUS=data/king-james.txt
make_corpus() {
  [ -s data/arithmetic/text.txt ] || tools/arithmetic
  [ ! -s "$CORPUS" ] || return 0
  install_packages corpus
  say "writing $CORPUS"
  mkdir -p data
  bible -f gen1:1-rev22:21 </dev/null | sed 's/^[^ ]* //' >"$CORPUS.part"
  [ "$(wc -l <"$CORPUS.part")" -eq 31102 ] || die "bible printed something else than the 31102 verses"
  mv "$CORPUS.part" "$CORPUS"
}

# Tokenizers of published models, and what Hugging Face's library gives for them (tools/tokenizers). Without a network
# the tests that need them are skipped and say so.
make_tokenizers() {
  tools/tokenizers || say "no published tokenizers: the tests RealTokenizer are skipped"
}

# build PRESET [TARGET...]
build() {
  preset=$1
  shift
  say "building ($preset)"
  cmake --preset "$preset" >/dev/null || die "cmake could not configure; its message is above"
  cmake --build --preset "$preset" ${1:+--target "$@"} || die "the build failed; its output is above"
}
