// How positions in pages are walked. The same for every vector target.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hyperrun::kernels {

inline constexpr std::int64_t kRowTile = 256;              // positions whose scores are held at once
inline constexpr std::int64_t kRowStride = kRowTile + 16;  // of heads: not a multiple of 1 KiB

// f(i, at, n): positions [from + i, from + i + n) lie at row `at` of the pages.
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
