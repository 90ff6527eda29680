// The zigzag order of a sequence whose attention goes round a ring of n devices. The sequence is cut into 2n
// chunks; device r has chunk r and chunk 2n - 1 - r. Under the causal mask all devices then have equal work
// in each step of the ring.
//
//   n = 2, chunks of one     place     0 1 2 3
//                            position  0 3 1 2
#pragma once

#include <algorithm>
#include <cstdint>

namespace hyperrun {

struct Zigzag {
  std::int64_t ring = 1;   // devices of the ring; 1: the natural order
  std::int64_t chunk = 0;  // positions of a chunk; the sequence has 2 * ring chunks

  static Zigzag of(std::int64_t length, std::int64_t ring) {
    return ring == 1 ? Zigzag{} : Zigzag{ring, length / (2 * ring)};
  }

  std::int64_t position(std::int64_t place) const {
    if (ring == 1) return place;
    const std::int64_t part = place / (2 * chunk), within = place % (2 * chunk);
    return (within < chunk ? part : 2 * ring - 1 - part) * chunk + within % chunk;
  }
  // The place of a position. A position behind the end maps to itself, which is no valid place either.
  std::int64_t place(std::int64_t position) const {
    if (ring == 1 || position >= 2 * ring * chunk) return position;
    const std::int64_t c = position / chunk;
    return (c < ring ? 2 * c : 2 * (2 * ring - 1 - c) + 1) * chunk + position % chunk;
  }
  // The number of places from `place` on, at most `most`, that hold consecutive positions.
  std::int64_t run(std::int64_t place, std::int64_t most) const {
    return ring == 1 ? most : std::min(most, chunk - place % chunk);
  }
  bool operator==(const Zigzag&) const = default;
};

}  // namespace hyperrun
