// Where a device is, in the words of its programs, for the report on a lost or hung one: "train of step 13,
// after layers.1.ffn.gate.product". Written by the thread that executes, read by the link's.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "runtime/ir/program.h"

namespace hyperrun {

class DeviceWhereabouts {
 public:
  // Until the guard goes, the device is in `program`, which must live as long.
  class Stay {
   public:
    Stay(DeviceWhereabouts& of, const Program& program, std::int64_t step) : of_(of) {
      of_.set(&program, step);
    }
    ~Stay() { of_.set(nullptr, 0); }
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;

   private:
    DeviceWhereabouts& of_;
  };

  // `last_instruction`: that it has finished, -1: none. Empty outside of a program.
  std::string text(std::int64_t last_instruction) const {
    const std::lock_guard lock(mutex_);
    if (program_ == nullptr) return {};
    const std::string where = program_->name + " of step " + std::to_string(step_ + 1);
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
