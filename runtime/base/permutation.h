// Shuffled orders that need no table and no state. Samplers draw from them.
#pragma once

#include <cstdint>

namespace hyperrun {

// The finaliser of SplitMix64: a bijection of 64 bits of which every input bit moves about half of the
// output's.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Element `index` (< size) of the permutation of [0, size) that `key` selects. The results must never change:
// a resumed run reads on where it stopped by them.
std::uint64_t permuted(std::uint64_t index, std::uint64_t size, std::uint64_t key);

}  // namespace hyperrun
