// Counts the live bytes of each tier while a Program runs, as its instructions begin and end. Bytes of HBM
// are counted by category too.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/ir/program.h"
#include "runtime/ir/stats.h"

namespace hyperrun {

// The live peak, and the live bytes of each category at that moment.
struct PeakUse {
  Bytes bytes{};
  CategoryBytes by_category{};
};

class LiveBytes {
 public:
  explicit LiveBytes(const Program& program);

  void begin_program();
  void begin(std::size_t instr);  // buffers that this instruction uses first become live
  void end(std::size_t instr);    // buffers that it uses last die

  const CategoryBytes& now() const { return now_; }
  Bytes total(Tier tier = Tier::kHbm) const { return totals_[index_of(tier)]; }
  const PeakUse& peak() const { return peak_; }  // live peak of HBM since begin_program()

 private:
  void add(std::int32_t buffer, std::int64_t sign);

  const Program& program_;
  // Buffers by instruction: those of instruction i are list[first[i]] to list[first[i + 1] - 1].
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

// Appends the live bytes of now to the curves: to that of HBM always, to those of other tiers when they
// changed.
void record_live(std::array<Curve, kTiers>& curves, std::int64_t time, const LiveBytes& live);

// The planned live peak: instructions run one after the other in the Program's order. In an execution some
// overlap, so the peak may be at another moment and differs from run to run. Neither exceeds Program::peak.
PeakUse peak_use(const Program& program);

}  // namespace hyperrun
