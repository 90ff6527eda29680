// Which rows of experts make a tile. Rows have come from `sources` devices; of each they lie sorted by group
// (an expert). Tile t of T has of the N rows of each source those from N t / T up to N (t + 1) / T, both
// rounded down:
//
//   source 0   | a a a b | b c c c |        T = 2: each tile has half of what each source has sent, so that
//   in source 1   | a b b   | b c c   |        none a device sends or receives more than in another
//
// Sorted by group, rows lie tile by tile, in a tile group by group, of a group source by source:
//
//   a a a a b b b | b b c c c c c
//
// All that is a function of the counts, which all devices know of their rows: those who send a tile and those
// who receive it agree without a message. A group has most of its rows in few tiles, so that products over a
// tile take few matrices, with many rows each.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace hyperrun::kernels {

struct RowTile {
  std::int64_t index = 0, count = 1;
};

// Rows of groups, or of a tile of them: counts [sources, groups].
struct GroupRows {
  const std::int32_t* counts = nullptr;
  std::int64_t groups = 0, sources = 1;
  RowTile tile{};
};

struct RowRange {
  std::int64_t first = 0, count = 0;
};

inline constexpr std::int64_t kMostSources = 4096;

// Of n rows of one source those of the tile.
constexpr RowRange share(std::int64_t n, const RowTile& tile) {
  const std::int64_t first = n * tile.index / tile.count;
  return {first, n * (tile.index + 1) / tile.count - first};
}

// The tile's rows, sorted by group.
RowRange range_of(const GroupRows& rows);

// What a tile has of the rows that lie sorted by peer (counts [starts.size(), groups]), by peer: how many
// elements, and where they begin. A row has `width` elements.
void blocks_of_tile(const RowTile& tile, std::int64_t groups, const std::int32_t* counts, std::int64_t width,
                    std::span<std::int64_t> elements, std::span<std::int64_t> starts);

// Goes through the groups of a tile.
class TileRows {
 public:
  explicit TileRows(const GroupRows& rows);

  std::int64_t first() const { return first_; }  // of the tile, sorted by group
  // Of the group where it stands, at first 0: its rows in the tile; those of one source, as they lie before
  // they are sorted.
  std::int64_t count() const;
  RowRange of_source(std::int64_t s) const;
  void next();

 private:
  struct Source {
    std::int64_t first;       // row of all
    std::int64_t begin, end;  // of the tile, among its rows
    std::int64_t passed;      // of earlier groups
  };
  const Source& source(std::int64_t s) const { return sources_[static_cast<std::size_t>(s)]; }

  GroupRows rows_;
  std::int64_t group_ = 0, first_ = 0;
  std::array<Source, kMostSources> sources_;  // of which rows_.sources have values
};

}  // namespace hyperrun::kernels
