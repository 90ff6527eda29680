#include "runtime/device/kernels/tile_rows.h"

#include <algorithm>
#include <numeric>

#include "runtime/base/error.h"

namespace hyperrun::kernels {
namespace {

std::int64_t sum(const std::int32_t* counts, std::int64_t n) {
  return std::accumulate(counts, counts + n, std::int64_t{0});
}

}  // namespace

RowRange range_of(const GroupRows& rows) {
  RowRange range;
  for (std::int64_t s = 0; s < rows.sources; ++s) {
    const RowRange own = share(sum(rows.counts + s * rows.groups, rows.groups), rows.tile);
    range.first += own.first;
    range.count += own.count;
  }
  return range;
}

void blocks_of_tile(const RowTile& tile, std::int64_t groups, const std::int32_t* counts, std::int64_t width,
                    std::span<std::int64_t> elements, std::span<std::int64_t> starts) {
  std::int64_t before = 0;
  for (std::size_t peer = 0; peer < starts.size(); ++peer) {
    const std::int64_t n = sum(counts + static_cast<std::int64_t>(peer) * groups, groups);
    const RowRange own = share(n, tile);
    elements[peer] = own.count * width;
    starts[peer] = (before + own.first) * width;
    before += n;
  }
}

TileRows::TileRows(const GroupRows& rows) : rows_(rows) {
  HR_CHECK(rows.sources <= kMostSources);
  std::int64_t before = 0;
  for (std::int64_t s = 0; s < rows.sources; ++s) {
    const std::int64_t n = sum(rows.counts + s * rows.groups, rows.groups);
    const RowRange own = share(n, rows.tile);
    sources_[static_cast<std::size_t>(s)] = {before, own.first, own.first + own.count, 0};
    first_ += own.first;
    before += n;
  }
}

RowRange TileRows::of_source(std::int64_t s) const {
  const Source& from = source(s);
  const std::int64_t n = rows_.counts[s * rows_.groups + group_];
  const std::int64_t begin = std::max(from.passed, from.begin), end = std::min(from.passed + n, from.end);
  return {from.first + begin, std::max<std::int64_t>(0, end - begin)};
}

std::int64_t TileRows::count() const {
  std::int64_t n = 0;
  for (std::int64_t s = 0; s < rows_.sources; ++s) n += of_source(s).count;
  return n;
}

void TileRows::next() {
  for (std::int64_t s = 0; s < rows_.sources; ++s)
    sources_[static_cast<std::size_t>(s)].passed += rows_.counts[s * rows_.groups + group_];
  ++group_;
}

}  // namespace hyperrun::kernels
