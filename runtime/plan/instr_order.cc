#include "runtime/plan/instr_order.h"

#include <algorithm>
#include <array>

namespace hyperrun {

InstrOrder::InstrOrder(const Program& program) {
  std::array<std::vector<std::int32_t>, kStreams> streams;
  std::vector<std::int32_t> makers(program.buffers.size(), -1);
  const auto at = [](StreamKind s) { return static_cast<std::size_t>(s); };
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    auto& own = streams[at(instr.stream)];
    if (!own.empty()) before_.before.push_back(own.back());
    previous_.push_back(own.empty() ? -1 : own.back());
    for (const Event& e : instr.waits)
      before_.before.push_back(streams[at(e.stream)][static_cast<std::size_t>(e.seq) - 1]);
    before_.end_instr();
    each_use(instr, [&](const Operand& o, bool reads, bool) {
      const std::int32_t maker = makers[o.buffer.index()];
      if (reads && maker >= 0 && program.instrs[static_cast<std::size_t>(maker)].stream != instr.stream)
        makers_.before.push_back(maker);
    });
    makers_.end_instr();
    own.push_back(static_cast<std::int32_t>(i));
    for (const Operand& o : instr.out) makers[o.buffer.index()] = own.back();
  }
}

std::vector<bool> InstrOrder::behind(const std::vector<bool>& sources, std::size_t from, std::size_t to,
                                     const std::vector<bool>* left_out) const {
  std::vector<bool> behind(sources.begin() + static_cast<std::ptrdiff_t>(from),
                           sources.begin() + static_cast<std::ptrdiff_t>(to) + 1);
  for (std::size_t i = from; i <= to; ++i)
    each_before(i, left_out, [&](std::size_t before) {
      if (before >= from && behind[before - from]) behind[i - from] = true;
    });
  return behind;
}

std::vector<double> InstrOrder::begins_behind(const std::vector<double>& durations,
                                              const std::vector<bool>& behind, std::size_t from,
                                              const std::vector<bool>* left_out) const {
  std::vector<double> begins(behind.size());
  for (std::size_t i = 0; i < behind.size(); ++i) {
    if (!behind[i]) continue;
    each_before(from + i, left_out, [&](std::size_t before) {
      if (before < from || !behind[before - from]) return;
      const double lasts = left_out != nullptr && (*left_out)[before] ? 0 : durations[before];
      begins[i] = std::max(begins[i], begins[before - from] + lasts);
    });
  }
  return begins;
}

std::vector<double> InstrOrder::begins(const std::vector<double>& durations, std::size_t from,
                                       std::size_t to) const {
  std::vector<double> begins(to + 1 - from);
  for (std::size_t i = from; i <= to; ++i)
    each_before(i, nullptr, [&](std::size_t before) {
      if (before >= from)
        begins[i - from] = std::max(begins[i - from], begins[before - from] + durations[before]);
    });
  return begins;
}

}  // namespace hyperrun
