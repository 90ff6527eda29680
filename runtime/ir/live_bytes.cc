#include "runtime/ir/live_bytes.h"

#include <numeric>

namespace hyperrun {

namespace {

bool touches(const Instr& instr, std::int32_t buffer) {
  bool found = false;
  each_use(instr, [&](const Operand& o, bool, bool) { found = found || o.buffer.value == buffer; });
  return found;
}

}  // namespace

LiveBytes::LiveBytes(const Program& program) : program_(program) {
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
  kept_until_.first.resize(program.instrs.size() + 2);
  const auto death = [&](std::int32_t b, const Buffer& buffer) -> Changes& {
    const Instr& last = program.instrs[static_cast<std::size_t>(buffer.last)];
    return last.stream == StreamKind::kSend && !touches(last, b) ? kept_until_ : deaths_;
  };
  each_mortal([&](std::int32_t b, const Buffer& buffer) {
    births_.count(buffer.first), death(b, buffer).count(buffer.last);
  });
  for (Changes* changes : {&births_, &deaths_, &kept_until_}) {
    std::partial_sum(changes->first.begin(), changes->first.end(), changes->first.begin());
    changes->list.resize(static_cast<std::size_t>(changes->first.back()));
  }
  each_mortal([&](std::int32_t b, const Buffer& buffer) {
    births_.add(buffer.first, b), death(b, buffer).add(buffer.last, b);
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
  kept_until_.each(instr, [this](std::int32_t b) { add(b, -1); });
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
