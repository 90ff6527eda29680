// What lies in HBM as a Program runs: bytes by category, counted as instructions begin and end.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/ir/program.h"
#include "runtime/ir/stats.h"

namespace hyperrun {

class LiveBytes {
 public:
  explicit LiveBytes(const Program& program);

  void begin_program();
  void begin(std::size_t instr);  // its buffers come to life
  void end(std::size_t instr);    // buffers whose last use it was die

  const CategoryBytes& now() const { return now_; }
  Bytes total() const { return total_; }

 private:
  void add(std::int32_t buffer, std::int64_t sign);

  const Program& program_;
  std::vector<std::vector<std::int32_t>> births_, deaths_;  // by instruction
  CategoryBytes state_{}, now_{};
  Bytes total_{};
};

// The most that lives at once, and of what, when the instructions run one after the other in the Program's
// order. Which of them overlap differs from run to run; this does not.
struct PeakUse {
  Bytes bytes{};
  CategoryBytes by_category{};
};
PeakUse peak_use(const Program& program);

}  // namespace hyperrun
