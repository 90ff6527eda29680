// Made-up Programs, and what comes of plans for them.
#pragma once

#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/offload/policy.h"

namespace hyperrun::testing {

const std::vector<Category> kAllMovable{Category::kActivations, Category::kWeights};

// 10 ns, and a nanosecond for two bytes.
Nanos transfer(Bytes b);

// An instruction lasts as long as its Fill has elements.
std::vector<Nanos> durations(const Program& program);

// Fills on two streams, of buffers of 512 to 4096 bytes, that read up to two others.
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

// Half of its activations hold a sixteenth of what they have room for, as rows that a router sends elsewhere.
Program with_room_to_spare(Program program, unsigned seed);

struct Outcome {
  Bytes peak{};
  Timeline timeline;
  // What the Program's own instructions read, as numbers that stand for values: what is written is made of
  // the instruction and of what it read, transfers copy.
  std::vector<std::size_t> seen;
  std::size_t made_again = 0;
  std::int64_t length() const { return timeline.length; }
};

// Of the Program that apply() makes, which is verified. `enough`: of place_buffers().
Outcome outcome(const Program& program, const std::vector<BufferUses>& uses, const Absences& absences,
                Bytes enough = Bytes(0));

struct Setting {
  Program program;
  std::vector<BufferUses> uses = uses_of_buffers(program, kAllMovable);
  Timeline timeline = timeline_of(program, durations(program));

  OffloadProblem problem(Bytes target) const { return {program, uses, timeline, transfer, target, {}, true}; }

  // As the compiler does: with each policy, and again for the times that come true.
  std::optional<Outcome> planned(Bytes budget) const;

  // As the compiler does: again for less, where places do not suffice.
  std::optional<Outcome> by(Absences (*policy)(const OffloadProblem&), Bytes budget,
                            const Timeline& times) const;
};

}  // namespace hyperrun::testing
