// Shuffled orders that need no table and no state: what samplers draw by.
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

// A permutation of [0, size): element `index` (< size) under `key`. What it gives never changes: resumed runs
// read on by it.
std::uint64_t permuted(std::uint64_t index, std::uint64_t size, std::uint64_t key);

}  // namespace hyperrun
