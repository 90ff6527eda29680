// The position of a device in its Programs, for the report on a lost or hung device: "train of step 13, after
// layers.1.ffn.gate.product". The executing thread writes it, the link's thread reads it.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <mutex>
#include <string>

#include "runtime/ir/program.h"

namespace hyperrun {

class DeviceProgress {
 public:
  // Marks the device as executing `program` while the guard exists. `program` must outlive the guard.
  class ProgramGuard {
   public:
    ProgramGuard(DeviceProgress& progress, const Program& program, std::int64_t step) : progress_(progress) {
      progress_.set(&program, step);
    }
    ~ProgramGuard() { progress_.set(nullptr, 0); }
    ProgramGuard(const ProgramGuard&) = delete;
    ProgramGuard& operator=(const ProgramGuard&) = delete;

   private:
    DeviceProgress& progress_;
  };

  // `last_instruction` is the last finished one, -1 if there is none. Empty outside of a Program.
  std::string describe(std::int64_t last_instruction) const {
    const std::lock_guard lock(mutex_);
    if (program_ == nullptr) return {};
    const std::string where = fmt::format("{} of step {}", program_->name, step_ + 1);
    const auto& instrs = program_->instrs;
    const auto known = [&](std::int64_t i) { return i >= 0 && i < std::ssize(instrs); };
    const auto origin = [&](std::int64_t i) {
      return program_->origins[static_cast<std::size_t>(instrs[static_cast<std::size_t>(i)].origin)];
    };
    return where + (known(last_instruction) ? ", after " + origin(last_instruction) : "") +
           (known(last_instruction + 1) ? ", before " + origin(last_instruction + 1) : "");
  }

 private:
  void set(const Program* program, std::int64_t step) {
    const std::lock_guard lock(mutex_);
    program_ = program;
    step_ = step;
  }

  mutable std::mutex mutex_;
  const Program* program_ = nullptr;
  std::int64_t step_ = 0;
};

}  // namespace hyperrun
