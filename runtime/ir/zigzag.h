// The order in which a sequence is kept where attention goes round a ring of n devices: cut into 2n chunks,
// of which part r of n are chunk r and chunk 2n - 1 - r. Under the causal mask all parts then have as much to
// do, with each other part.
//
//   n = 2, chunks of one     place     0 1 2 3
//                            position  0 3 1 2
#pragma once

#include <algorithm>
#include <cstdint>

namespace hyperrun {

struct Zigzag {
  std::int64_t ring = 1;   // parts; 1: the natural order
  std::int64_t chunk = 0;  // positions; 2 * ring of these are the sequence

  static Zigzag of(std::int64_t length, std::int64_t ring) {
    return ring == 1 ? Zigzag{} : Zigzag{ring, length / (2 * ring)};
  }

  std::int64_t position(std::int64_t place) const {
    if (ring == 1) return place;
    const std::int64_t part = place / (2 * chunk), within = place % (2 * chunk);
    return (within < chunk ? part : 2 * ring - 1 - part) * chunk + within % chunk;
  }
  // Of a position behind the end: itself, which is no place either.
  std::int64_t place(std::int64_t position) const {
    if (ring == 1 || position >= 2 * ring * chunk) return position;
    const std::int64_t c = position / chunk;
    return (c < ring ? 2 * c : 2 * (2 * ring - 1 - c) + 1) * chunk + position % chunk;
  }
  // How many of `most` places from this one on hold positions that follow each other.
  std::int64_t run(std::int64_t place, std::int64_t most) const {
    return ring == 1 ? most : std::min(most, chunk - place % chunk);
  }
  bool operator==(const Zigzag&) const = default;
};

}  // namespace hyperrun
