// Random Programs, and the outcome of offload plans for them.
#pragma once

#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/offload/policy.h"

namespace hyperrun::testing {

const std::vector<Category> kAllMovable{Category::kActivations, Category::kWeights};

// The duration of a transfer: 10 ns and 1 ns for each two bytes.
Nanos transfer(Bytes b);

// 1 ns for each element of its Fill, by instruction.
std::vector<Nanos> durations(const Program& program);

// A Program of Fills on two streams. They write buffers of 512 to 4096 bytes and read up to two others.
class RandomProgram {
 public:
  RandomProgram(unsigned seed, int instrs, int states);
  Program take() && { return std::move(program_); }

 private:
  std::int64_t any(std::int64_t from, std::int64_t to);
  Operand add_buffer(std::string name, bool state);
  void add_instr(int i);

  std::mt19937_64 random_;
  Program program_;
  std::vector<Operand> written_;
};

// Marks half of the activations as fifteen sixteenths empty, like experts' rows that a router sent elsewhere.
Program with_room_to_spare(Program program, unsigned seed);

struct Outcome {
  Bytes peak{};
  Timeline timeline;
  // Hashes of the values that the original instructions read. A written value is the hash of the instruction
  // and its inputs; transfers copy values.
  std::vector<std::size_t> seen;
  std::size_t rematerialized = 0;
  std::int64_t length() const { return timeline.length; }
};

// Applies a plan and verifies the Program. `enough`: see place_buffers().
Outcome outcome(const Program& program, const std::vector<BufferUses>& uses, const OffloadPlan& plan,
                Bytes enough = Bytes(0));

struct Setting {
  Program program;
  std::vector<BufferUses> uses = uses_of_buffers(program, kAllMovable);
  Timeline timeline = timeline_of(program, durations(program));

  OffloadProblem problem(Bytes target) const { return {program, uses, timeline, transfer, target, {}, true}; }

  // Like the compiler: tries each policy, then plans again for the resulting times.
  std::optional<Outcome> planned(Bytes budget) const;

  // Like the compiler: plans for less memory until offsets fit the budget.
  std::optional<Outcome> by(OffloadPlan (*policy)(const OffloadProblem&), Bytes budget,
                            const Timeline& times) const;
};

}  // namespace hyperrun::testing
