// The order in which positions in pages are read. It is the same for every vector target.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hyperrun::kernels {

inline constexpr std::int64_t kRowTile = 256;              // positions whose scores are held at once
inline constexpr std::int64_t kRowStride = kRowTile + 16;  // distance of heads: not a multiple of 1 KiB

// The positions of a sequence that this device holds, counted without the others. They are the part `part` of
// each page of parts * page positions.
struct Held {
  std::int64_t page = 1, parts = 1, part = 0;

  // Number of held positions in [0, end).
  std::int64_t before(std::int64_t end) const {
    const std::int64_t whole = parts * page;
    return end / whole * page + std::clamp<std::int64_t>(end % whole - part * page, 0, page);
  }
  // Position of the held one with this number.
  std::int64_t position(std::int64_t number) const {
    return (number / page * parts + part) * page + number % page;
  }
};

// Calls f(i, at, n) for each run: positions [from + i, from + i + n) lie at row `at` of the pages.
template <class F>
void each_page_run(const std::int32_t* pages, std::int64_t page, std::int64_t from, std::int64_t count, F f) {
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t position = from + i, within = position % page;
    const std::int64_t n = std::min(page - within, count - i);
    f(i, pages[position / page] * page + within, n);
    i += n;
  }
}

}  // namespace hyperrun::kernels
