// The rows of experts that make a tile. Rows have come from `sources` devices; those of each lie sorted by
// group (an expert). Tile t of T has, of the N rows of each source, rows N t / T up to N (t + 1) / T, both
// rounded down:
//
//   source 0   | a a a b | b c c c |      T = 2: each tile has half of the rows of each source,
//   source 1   | a b b   | b c c   |      so every device sends and receives equally much in each
//
// Sorted by group, rows lie tile by tile, within a tile group by group, and within a group source by source:
//
//   a a a a b b b | b b c c c c c
//
// This is a function of the counts, which all devices know of their rows, so sender and receiver of a tile
// agree without a message. A group has most of its rows in few tiles, so that products over a tile take few
// matrices, with many rows each.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace hyperrun::kernels {

struct RowTile {
  std::int64_t index = 0, count = 1;
};

// Rows of groups, or a tile of them: counts [sources, groups].
struct GroupRows {
  const std::int32_t* counts = nullptr;
  std::int64_t groups = 0, sources = 1;
  RowTile tile{};
};

struct RowRange {
  std::int64_t first = 0, count = 0;
};

inline constexpr std::int64_t kMostSources = 4096;

// The tile's part of n rows of one source.
constexpr RowRange share(std::int64_t n, const RowTile& tile) {
  const std::int64_t first = n * tile.index / tile.count;
  return {first, n * (tile.index + 1) / tile.count - first};
}

// The range of the tile's rows, sorted by group.
RowRange range_of(const GroupRows& rows);

// The tile's part of rows sorted by peer (counts [starts.size(), groups]), by peer: the number of elements,
// and the first. A row has `width` elements.
void blocks_of_tile(const RowTile& tile, std::int64_t groups, const std::int32_t* counts, std::int64_t width,
                    std::span<std::int64_t> elements, std::span<std::int64_t> starts);

// A cursor over the groups of a tile.
class TileRows {
 public:
  explicit TileRows(const GroupRows& rows);

  std::int64_t first() const { return first_; }  // first row of the group in the tile, sorted by group
  // The rows of the present group (at first 0) in the tile, and those of one source, before they are sorted.
  std::int64_t count() const;
  RowRange of_source(std::int64_t s) const;
  void next();

 private:
  struct Source {
    std::int64_t first;       // first row among all
    std::int64_t begin, end;  // range of the tile among the source's rows
    std::int64_t passed;      // rows of earlier groups
  };
  const Source& source(std::int64_t s) const { return sources_[static_cast<std::size_t>(s)]; }

  GroupRows rows_;
  std::int64_t group_ = 0, first_ = 0;
  std::array<Source, kMostSources> sources_;  // the first rows_.sources have values
};

}  // namespace hyperrun::kernels
