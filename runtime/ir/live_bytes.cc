#include "runtime/ir/live_bytes.h"

#include <numeric>

namespace hyperrun {

namespace {

// The last instruction that uses each buffer. Buffer::last may be later: a buffer that is sent keeps its
// place until the next message, so that nobody has to wait for the peer to fetch it.
std::vector<std::int32_t> last_uses(const Program& program) {
  std::vector<std::int32_t> last(program.buffers.size(), -1);
  for (std::size_t i = 0; i < program.instrs.size(); ++i)
    each_use(program.instrs[i],
             [&](const Operand& o, bool, bool) { last[o.buffer.index()] = static_cast<std::int32_t>(i); });
  for (const Output& output : program.outputs)
    last[output.operand.buffer.index()] = program[output.operand.buffer].last;
  return last;
}

}  // namespace

LiveBytes::LiveBytes(const Program& program) : program_(program) {
  const std::vector<std::int32_t> last = last_uses(program);
  const auto each_mortal = [&](auto visit) {
    for (std::size_t b = 0; b < program.buffers.size(); ++b)
      if (const Buffer& buffer = program.buffers[b]; !buffer.state && buffer.first >= 0)
        visit(static_cast<std::int32_t>(b), buffer);
  };
  for (const Buffer& buffer : program.buffers) {
    if (!buffer.state) continue;
    states_[index_of(buffer.tier)] += buffer.bytes;
    if (buffer.tier == Tier::kHbm) state_[static_cast<std::size_t>(buffer.category)] += buffer.bytes;
  }
  births_.first.resize(program.instrs.size() + 2);
  deaths_.first.resize(program.instrs.size() + 2);
  each_mortal([&](std::int32_t b, const Buffer& buffer) {
    births_.count(buffer.first), deaths_.count(last[static_cast<std::size_t>(b)]);
  });
  for (Changes* changes : {&births_, &deaths_}) {
    std::partial_sum(changes->first.begin(), changes->first.end(), changes->first.begin());
    changes->list.resize(static_cast<std::size_t>(changes->first.back()));
  }
  each_mortal([&](std::int32_t b, const Buffer& buffer) {
    births_.add(buffer.first, b), deaths_.add(last[static_cast<std::size_t>(b)], b);
  });
  begin_program();
}

void LiveBytes::begin_program() {
  now_ = state_;
  totals_ = states_;
  peak_ = {total(), now_};
}

void LiveBytes::begin(std::size_t instr) {
  births_.each(instr, [this](std::int32_t b) { add(b, 1); });
  if (total() > peak_.bytes) peak_ = {total(), now_};
}

void LiveBytes::end(std::size_t instr) {
  deaths_.each(instr, [this](std::int32_t b) { add(b, -1); });
}

void LiveBytes::add(std::int32_t buffer, std::int64_t sign) {
  const Buffer& b = program_.buffers[static_cast<std::size_t>(buffer)];
  totals_[index_of(b.tier)] += b.bytes * sign;
  if (b.tier == Tier::kHbm) now_[static_cast<std::size_t>(b.category)] += b.bytes * sign;
}

void record_live(std::array<Curve, kTiers>& curves, std::int64_t time, const LiveBytes& live) {
  for (const Tier tier : {Tier::kHbm, Tier::kPool, Tier::kFlash}) {
    Curve& curve = curves[index_of(tier)];
    const std::int64_t bytes = live.total(tier).value, before = curve.empty() ? 0 : curve.back().second;
    if (tier == Tier::kHbm || bytes != before) curve.emplace_back(time, bytes);
  }
}

PeakUse peak_use(const Program& program) {
  LiveBytes live(program);
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    live.begin(i);
    live.end(i);
  }
  return live.peak();
}

}  // namespace hyperrun
