// What lies in HBM and beyond as a Program runs, counted as instructions begin and end; of HBM by category.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/ir/program.h"
#include "runtime/ir/stats.h"

namespace hyperrun {

// The most that lived at once, and of what.
struct PeakUse {
  Bytes bytes{};
  CategoryBytes by_category{};
};

class LiveBytes {
 public:
  explicit LiveBytes(const Program& program);

  void begin_program();
  void begin(std::size_t instr);  // its buffers come to life
  void end(std::size_t instr);    // buffers whose last use it was die

  const CategoryBytes& now() const { return now_; }
  Bytes total(Tier tier = Tier::kHbm) const { return totals_[index_of(tier)]; }
  const PeakUse& peak() const { return peak_; }  // of HBM, since begin_program()

 private:
  void add(std::int32_t buffer, std::int64_t sign);

  const Program& program_;
  // Of instruction i: list[first[i]] to list[first[i + 1]].
  struct Changes {
    std::vector<std::int32_t> first, list;
    void count(std::int32_t instr) { ++first[static_cast<std::size_t>(instr) + 2]; }
    void add(std::int32_t instr, std::int32_t buffer) {
      list[static_cast<std::size_t>(first[static_cast<std::size_t>(instr) + 1]++)] = buffer;
    }
    void each(std::size_t instr, auto visit) const {
      for (std::int32_t i = first[instr]; i < first[instr + 1]; ++i) visit(list[static_cast<std::size_t>(i)]);
    }
  };
  Changes births_, deaths_;
  CategoryBytes state_{}, now_{};  // in HBM
  TierBytes states_{}, totals_{};
  PeakUse peak_;
};

// Adds what lives now to the curves: of HBM each time, of other tiers when it has changed.
void record_live(std::array<Curve, kTiers>& curves, std::int64_t time, const LiveBytes& live);

// As it is planned: when the instructions run one after the other in the Program's order. As it is executed
// some overlap, which differs from run to run: then another moment may be the fullest. Neither is ever above
// what the Program has of the arena.
PeakUse peak_use(const Program& program);

}  // namespace hyperrun
