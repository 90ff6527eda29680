#include "runtime/cost/tiles.h"

#include <algorithm>
#include <cmath>

namespace hyperrun {
namespace {

// HBM traffic per element of a partial sum: float32, written and read.
constexpr double kPartialBytes = 8;

struct Cut {
  double rows = 0, columns = 0, parts = 1;
};

Tiling tiling_of(const Cut& cut, const Product& p, const Machine& machine) {
  const Tiles& tiles = machine.tiles;
  const double cores = tiles.cores.value;
  const double all =
      p.blocks * std::ceil(p.m / p.blocks / cut.rows) * std::ceil(p.n / cut.columns) * cut.parts;
  const double computed = std::ceil(all / cores) * cores * cut.rows * cut.columns / cut.parts;
  const double more = 1 / cut.rows + 1 / cut.columns - 1 / tiles.rows.value - 1 / tiles.columns.value;
  return {.rows = cut.rows,
          .columns = cut.columns,
          .parts = cut.parts,
          .share = p.m * p.n / (computed * (1 + tiles.operands.value * more)),
          .depth = machine.products.at(p.k / cut.parts),
          .partial_bytes = cut.parts > 1 ? kPartialBytes * cut.parts * p.m * p.n : 0};
}

double seconds(const Tiling& t, const Product& p, const Machine& machine, double rate, double memory) {
  const double arithmetic = 2 * p.m * p.n * p.k / (rate * t.share * t.depth);
  return std::max(arithmetic, memory) + t.partial_bytes / machine.hbm_bandwidth.value;
}

}  // namespace

Tiling tiling(const Product& product, const Machine& machine, double rate, double memory) {
  const Tiles& tiles = machine.tiles;
  if (tiles.cores.value <= 0) return {.depth = machine.products.at(product.k)};
  Tiling best;
  double least = 0;
  const auto try_cut = [&](const Cut& cut) {
    const Tiling t = tiling_of(cut, product, machine);
    if (const double s = seconds(t, product, machine, rate, memory); best.rows == 0 || s < least)
      least = s, best = t;
  };
  const double most_parts = std::max(1.0, std::min(tiles.parts.value, product.k));
  for (double r = 0; r <= tiles.halvings.value; ++r)
    for (double c = 0; c <= tiles.halvings.value; ++c)
      for (double parts = 1; parts <= most_parts; parts *= 2) {
        const Cut cut{tiles.rows.value / std::exp2(r), tiles.columns.value / std::exp2(c), parts};
        try_cut(cut);
        if (tiles.halvings.value > 0) try_cut({cut.columns, cut.rows, parts});
      }
  return best;
}

}  // namespace hyperrun
