#include "runtime/ir/live_bytes.h"

#include <numeric>

namespace hyperrun {

namespace {

// A place may be kept for longer than its buffer is used, for what is sent: an instruction that takes it then
// need not wait for the end of that time, only of the last use.
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
      if (const Buffer& buffer = program.buffers[b];
          !buffer.state && buffer.first >= 0 && buffer.tier == Tier::kHbm)
        visit(static_cast<std::int32_t>(b), buffer);
  };
  for (const Buffer& buffer : program.buffers)
    if (buffer.state && buffer.tier == Tier::kHbm)
      state_[static_cast<std::size_t>(buffer.category)] += buffer.bytes;
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
  total_ = Bytes(0);
  for (Bytes b : now_) total_ += b;
  peak_ = {total_, now_};
}

void LiveBytes::begin(std::size_t instr) {
  births_.each(instr, [this](std::int32_t b) { add(b, 1); });
  if (total_ > peak_.bytes) peak_ = {total_, now_};
}

void LiveBytes::end(std::size_t instr) {
  deaths_.each(instr, [this](std::int32_t b) { add(b, -1); });
}

void LiveBytes::add(std::int32_t buffer, std::int64_t sign) {
  const Buffer& b = program_.buffers[static_cast<std::size_t>(buffer)];
  now_[static_cast<std::size_t>(b.category)] += b.bytes * sign;
  total_ += b.bytes * sign;
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
