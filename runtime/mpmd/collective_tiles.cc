#include "runtime/mpmd/collective_tiles.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/mpmd/row_chains.h"
#include "runtime/mpmd/tasks.h"

namespace hyperrun {
namespace {

constexpr std::int32_t kMost = 16;  // tiles of a chain that are tried

// Tiles must save at least 1 / kLeastGain of a chain's time to be worth their instructions.
constexpr std::int64_t kLeastGain = 200;

// Limits the number of tiles so that each has rows.
std::int32_t most_tiles(const RowChain& chain, std::int32_t tiles) {
  return static_cast<std::int32_t>(std::min<std::int64_t>(tiles, *std::ranges::min_element(chain.rows)));
}

// A chain's range of instructions as a Program of its own. Buffers are numbered by first use, so equal layers
// give equal Programs.
Program stretch_of(const Program& program, const RowChain& chain) {
  Program own;
  own.mesh = program.mesh;
  std::unordered_map<std::int32_t, BufferId> known;
  const auto own_buffer = [&](BufferId b) {
    const auto [found, is_new] = known.try_emplace(b.value, BufferId(std::ssize(own.buffers)));
    if (is_new) {
      Buffer& buffer = own.buffers.emplace_back();
      buffer.bytes = program[b].bytes;
    }
    return found->second;
  };
  for (std::int32_t i = chain.begin; i < chain.end; ++i) {
    Instr& instr = own.instrs.emplace_back(program.instrs[static_cast<std::size_t>(i)]);
    instr.origin = 0;
    for (auto* list : {&instr.in, &instr.out})
      for (Operand& o : *list) o.buffer = own_buffer(o.buffer);
    if (instr.scratch.buffer.valid()) instr.scratch.buffer = own_buffer(instr.scratch.buffer);
  }
  own.origins = {""};
  return own;
}

RowChain relative_to_begin(const RowChain& chain) {
  RowChain own = chain;
  for (RowChain::Link& link : own.links) link.instr -= chain.begin;
  own.begin = 0;
  own.end = chain.end - chain.begin;
  return own;
}

// Replaces each link of a chain by its tiles, in place.
class TileCutter {
 public:
  explicit TileCutter(Program& program) : program_(program) { instrs_.reserve(program.instrs.size()); }

  void cut(const RowChain& chain, std::int32_t tiles) {
    keep_until(chain.begin);
    for (std::size_t l = 0; l < chain.links.size(); ++l) {
      keep_until(chain.links[l].instr);
      cut(chain.links[l], chain.rows[l], tiles);
    }
    keep_until(chain.end);
  }
  void finish() {
    keep_until(static_cast<std::int32_t>(program_.instrs.size()));
    program_.instrs = std::move(instrs_);
  }
  std::int32_t size() const { return static_cast<std::int32_t>(instrs_.size()); }

 private:
  void keep_until(std::int32_t end) {
    for (; next_ < end; ++next_)
      instrs_.push_back(std::move(program_.instrs[static_cast<std::size_t>(next_)]));
  }

  void cut(const RowChain::Link& link, std::int64_t rows, std::int32_t tiles) {
    const Instr& whole = program_.instrs[static_cast<std::size_t>(next_++)];
    const std::string origin = program_.origins[static_cast<std::size_t>(whole.origin)];
    for (std::int32_t t = 0; t < tiles; ++t) {
      instrs_.push_back(one_tile(whole, link, rows, {t, tiles}));
      instrs_.back().origin = static_cast<std::int32_t>(program_.origins.size());
      program_.origins.push_back(fmt::format("{}[{}/{}]", origin, t, tiles));
    }
  }

  Program& program_;
  std::vector<Instr> instrs_;
  std::int32_t next_ = 0;  // next instruction of the Program
};

// The best way found to run one chain.
struct Best {
  std::int32_t tiles = 1;
  std::vector<std::int32_t> order;  // of the cut stretch; empty: unchanged
};

class TilePlanner {
 public:
  TilePlanner(const Program& program, std::int32_t tiles, const Machine& machine, int device)
      : program_(program), tiles_(tiles), machine_(machine), device_(device) {}

  const Best& best_of(const RowChain& chain) {
    Program stretch = stretch_of(program_, chain);
    RowChain own = relative_to_begin(chain);
    const auto known = std::ranges::find_if(known_, [&](const Known& k) {
      return k.chain.links == own.links && k.chain.rows == own.rows && k.stretch.instrs == stretch.instrs;
    });
    if (known != known_.end()) return known->best;
    Best best = decide(stretch, own);
    return known_.emplace_back(Known{std::move(stretch), std::move(own), std::move(best)}).best;
  }

 private:
  struct Known {
    Program stretch;
    RowChain chain;
    Best best;
  };

  Best decide(const Program& stretch, const RowChain& chain) const {
    if (tiles_ > 1) {
      const std::int32_t tiles = most_tiles(chain, tiles_);
      return {tiles, in_tiles(stretch, chain, tiles).first};
    }
    const std::vector<StreamTask> whole = tasks_of(stretch, machine_, device_);
    const Nanos without = makespan(whole, identity_order(whole.size()));
    Best best;
    Nanos least = without - without / kLeastGain;
    for (std::int32_t tiles = 1; tiles <= most_tiles(chain, kMost); tiles *= 2) {
      auto [order, length] = in_tiles(stretch, chain, tiles);
      if (length >= least) continue;
      best = {tiles, std::move(order)};
      least = length - without / kLeastGain;
    }
    return best;
  }

  std::pair<std::vector<std::int32_t>, Nanos> in_tiles(Program stretch, const RowChain& chain,
                                                       std::int32_t tiles) const {
    if (tiles > 1) {
      TileCutter cutter(stretch);
      cutter.cut(chain, tiles);
      cutter.finish();
    }
    const std::vector<StreamTask> tasks = tasks_of(stretch, machine_, device_);
    std::vector<std::int32_t> order = list_schedule(tasks);
    const Nanos length = makespan(tasks, order);
    return {std::move(order), length};
  }

  const Program& program_;
  std::int32_t tiles_;
  const Machine& machine_;
  int device_;
  std::deque<Known> known_;
};

Nanos makespan(const Program& program, const Machine& machine, int device) {
  const std::vector<StreamTask> tasks = tasks_of(program, machine, device);
  return makespan(tasks, identity_order(tasks.size()));
}

}  // namespace

CollectiveTiling plan_collective_tiles(const Program& program, std::int32_t tiles, const Machine& machine,
                                       int device, Bytes hbm) {
  if (tiles == 1) return {};
  TilePlanner planner(program, tiles, machine, device);
  CollectiveTiling tiling;
  bool is_better = false;
  std::int32_t at = 0, stood = 0;  // positions in the cut Program and in this one
  const auto keep_until = [&](std::int32_t end) {
    for (; stood < end; ++stood) tiling.order.push_back(at++);
  };
  for (const RowChain& chain : row_chains(program)) {
    const Best& best = planner.best_of(chain);
    tiling.tiles.push_back(best.tiles);
    if (best.order.empty()) continue;
    is_better = true;
    keep_until(chain.begin);
    for (const std::int32_t i : best.order) tiling.order.push_back(at + i);
    at += static_cast<std::int32_t>(best.order.size());
    stood = chain.end;
  }
  keep_until(static_cast<std::int32_t>(program.instrs.size()));
  if (!is_better) return {};
  if (tiles > 1) return tiling;
  Program cut = program;
  apply(cut, tiling);
  const Bytes whole = live_peak(program), in_tiles = live_peak(cut);
  if (in_tiles > std::max(whole, hbm)) return {};
  if (makespan(cut, machine, device) >= makespan(program, machine, device)) return {};
  return tiling;
}

void apply(Program& program, const CollectiveTiling& tiling) {
  if (tiling.tiles.empty()) return;
  const std::vector<RowChain> chains = row_chains(program);
  if (chains.size() != tiling.tiles.size())
    throw Error(Code::kBadLayout,
                "what can be cut into tiles is not what can be in the model that it stands for")
        .legal("sizes that the job's axes divide as they divide the larger model's")
        .fix("divide sizes by less");
  TileCutter cutter(program);
  for (std::size_t c = 0; c < chains.size(); ++c)
    if (tiling.tiles[c] > 1) cutter.cut(chains[c], tiling.tiles[c]);
  cutter.finish();
  reorder(program, tiling.order);
}

}  // namespace hyperrun
