#include "runtime/ir/live_bytes.h"

namespace hyperrun {

LiveBytes::LiveBytes(const Program& program)
    : program_(program), births_(program.instrs.size()), deaths_(program.instrs.size()) {
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const Buffer& buffer = program.buffers[b];
    if (buffer.state) {
      state_[static_cast<std::size_t>(buffer.category)] += buffer.bytes;
    } else if (buffer.first >= 0) {
      births_[static_cast<std::size_t>(buffer.first)].push_back(static_cast<std::int32_t>(b));
      deaths_[static_cast<std::size_t>(buffer.last)].push_back(static_cast<std::int32_t>(b));
    }
  }
  begin_program();
}

void LiveBytes::begin_program() {
  now_ = state_;
  total_ = Bytes(0);
  for (Bytes b : now_) total_ += b;
}

void LiveBytes::begin(std::size_t instr) {
  for (std::int32_t b : births_[instr]) add(b, 1);
}

void LiveBytes::end(std::size_t instr) {
  for (std::int32_t b : deaths_[instr]) add(b, -1);
}

void LiveBytes::add(std::int32_t buffer, std::int64_t sign) {
  const Buffer& b = program_.buffers[static_cast<std::size_t>(buffer)];
  now_[static_cast<std::size_t>(b.category)] += b.bytes * sign;
  total_ += b.bytes * sign;
}

PeakUse peak_use(const Program& program) {
  LiveBytes live(program);
  PeakUse most{live.total(), live.now()};
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    live.begin(i);
    if (live.total() > most.bytes) most = {live.total(), live.now()};
    live.end(i);
  }
  return most;
}

}  // namespace hyperrun
