#include "runtime/plan/instr_order.h"

#include <algorithm>
#include <array>

namespace hyperrun {

InstrOrder::InstrOrder(const Program& program) {
  std::array<std::vector<std::int32_t>, kStreams> streams;
  const auto at = [](StreamKind s) { return static_cast<std::size_t>(s); };
  first_.push_back(0);
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    auto& own = streams[at(instr.stream)];
    if (!own.empty()) before_.push_back(own.back());
    previous_.push_back(own.empty() ? -1 : own.back());
    for (const Event& e : instr.waits)
      before_.push_back(streams[at(e.stream)][static_cast<std::size_t>(e.seq) - 1]);
    first_.push_back(before_.size());
    own.push_back(static_cast<std::int32_t>(i));
  }
}

std::vector<bool> InstrOrder::behind(const std::vector<bool>& sources, std::size_t from, std::size_t to,
                                     const std::vector<bool>* left_out) const {
  std::vector<bool> behind(sources.begin() + static_cast<std::ptrdiff_t>(from),
                           sources.begin() + static_cast<std::ptrdiff_t>(to) + 1);
  for (std::size_t i = from; i <= to; ++i)
    for (std::size_t b = first_[i]; b < first_[i + 1]; ++b)
      if (const auto before = static_cast<std::size_t>(before_[b]);
          before >= from && behind[before - from] && waits(i, before, left_out))
        behind[i - from] = true;
  return behind;
}

std::vector<double> InstrOrder::begins_behind(const std::vector<double>& durations,
                                              const std::vector<bool>& behind, std::size_t from,
                                              const std::vector<bool>* left_out) const {
  std::vector<double> begins(behind.size());
  for (std::size_t i = 0; i < behind.size(); ++i)
    for (std::size_t b = first_[from + i]; behind[i] && b < first_[from + i + 1]; ++b)
      if (const auto before = static_cast<std::size_t>(before_[b]);
          before >= from && behind[before - from] && waits(from + i, before, left_out)) {
        const double lasts = left_out != nullptr && (*left_out)[before] ? 0 : durations[before];
        begins[i] = std::max(begins[i], begins[before - from] + lasts);
      }
  return begins;
}

std::vector<double> InstrOrder::begins(const std::vector<double>& durations, std::size_t from,
                                       std::size_t to) const {
  std::vector<double> begins(to + 1 - from);
  for (std::size_t i = from; i <= to; ++i) {
    double begin = 0;
    for (std::size_t b = first_[i]; b < first_[i + 1]; ++b) {
      const auto before = static_cast<std::size_t>(before_[b]);
      if (before >= from) begin = std::max(begin, begins[before - from] + durations[before]);
    }
    begins[i - from] = begin;
  }
  return begins;
}

}  // namespace hyperrun
