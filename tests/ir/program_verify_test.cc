// verify(Program) finds planted faults: one thing is changed in a Program that is right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/compile/compile.h"
#include "tests/support/faults.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

using ::testing::HasSubstr;

Program train(const Job& job) { return compile(job).plan.roles[0].program("train"); }

class ProgramFaults : public ::testing::Test {
 protected:
  Program program_ = train(small_job(2, 2, {"sp"}));

  std::size_t buffer_named(const std::string& name) const {
    for (std::size_t i = 0; i < program_.buffers.size(); ++i)
      if (program_.buffers[i].name == name) return i;
    ADD_FAILURE() << name;
    return 0;
  }
  std::size_t instr_of(const std::string& origin) const {
    for (std::size_t i = 0; i < program_.instrs.size(); ++i)
      if (program_.origins[static_cast<std::size_t>(program_.instrs[i].origin)] == origin) return i;
    ADD_FAILURE() << origin;
    return 0;
  }
  // Numbers the streams anew, so that only the planted fault remains.
  void renumber() {
    std::array<std::int32_t, kStreams> issued{};
    for (Instr& i : program_.instrs) i.seq = ++issued[static_cast<std::size_t>(i.stream)];
  }
};

TEST_F(ProgramFaults, TheCompilersIsValid) { EXPECT_EQ(fault(program_), ""); }

// Every wait is needed: without any one of them two instructions race.
TEST_F(ProgramFaults, EveryWaitIsNeeded) {
  int waits = 0;
  for (Instr& instr : program_.instrs)
    for (std::size_t w = 0; w < instr.waits.size(); ++w, ++waits) {
      const Event dropped = instr.waits[w];
      instr.waits.erase(instr.waits.begin() + static_cast<std::ptrdiff_t>(w));
      EXPECT_THAT(fault(program_), HasSubstr("race"))
          << program_.origins[static_cast<std::size_t>(instr.origin)] << " after " << name(dropped.stream)
          << " " << dropped.seq;
      instr.waits.insert(instr.waits.begin() + static_cast<std::ptrdiff_t>(w), dropped);
    }
  EXPECT_GT(waits, 50);
  EXPECT_EQ(fault(program_), "");
}

TEST_F(ProgramFaults, EveryWaitIsNeededWithMicroBatches) {
  Job job = small_job(2, 1, {"zero1"});
  job.model.layers = 1;
  job.training.micro_batches = 2;
  program_ = train(job);
  for (Instr& instr : program_.instrs) {
    const std::vector<Event> waits = instr.waits;
    for (std::size_t w = 0; w < waits.size(); ++w) {
      instr.waits.erase(instr.waits.begin() + static_cast<std::ptrdiff_t>(w));
      EXPECT_THAT(fault(program_), HasSubstr("race"))
          << program_.origins[static_cast<std::size_t>(instr.origin)];
      instr.waits = waits;
    }
  }
}

TEST_F(ProgramFaults, WaitForTheInstructionBefore) {  // one too early
  for (Instr& instr : program_.instrs)
    for (Event& e : instr.waits) {
      if (e.seq == 1) continue;
      --e.seq;
      EXPECT_THAT(fault(program_), HasSubstr("race"))
          << program_.origins[static_cast<std::size_t>(instr.origin)];
      ++e.seq;
    }
}

TEST_F(ProgramFaults, WaitForWhatIsNotIssuedYet) {
  program_.instrs.front().waits = {{StreamKind::kComm, 3}};
  EXPECT_THAT(fault(program_), HasSubstr("not issued yet"));
  program_.instrs.front().waits = {{StreamKind::kComm, 0}};
  EXPECT_THAT(fault(program_), HasSubstr("not issued yet"));
}

TEST_F(ProgramFaults, TwoLiveBuffersAtOnePlace) {
  Buffer& h = program_.buffers[buffer_named("layers.0.ffn.h")];
  h.offset = program_.buffers[buffer_named("layers.0.ffn.gate.out")].offset;
  EXPECT_THAT(fault(program_), HasSubstr("overlaps"));
}

TEST_F(ProgramFaults, ABufferOverState) {
  Buffer& h = program_.buffers[buffer_named("layers.0.ffn.h")];
  const Buffer& w = program_.buffers[buffer_named("layers.1.ffn.down")];
  h.offset = w.offset + w.bytes - Bytes(64);
  EXPECT_THAT(fault(program_), HasSubstr("overlaps"));
}

TEST_F(ProgramFaults, UseAfterTheEndOfALife) {
  Buffer& h = program_.buffers[buffer_named("layers.0.ffn.h")];
  --h.last;
  EXPECT_THAT(fault(program_), HasSubstr("uses layers.0.ffn.h when it is not live"));
}

TEST_F(ProgramFaults, UseBeforeTheBeginOfALife) {
  Buffer& h = program_.buffers[buffer_named("layers.0.ffn.h")];
  ++h.first;
  EXPECT_THAT(fault(program_), HasSubstr("uses layers.0.ffn.h when it is not live"));
}

TEST_F(ProgramFaults, StreamOutOfOrder) {
  std::swap(program_.instrs[instr_of("layers.0.ffn.gate.product")].seq,
            program_.instrs[instr_of("layers.0.ffn.up.product")].seq);
  EXPECT_THAT(fault(program_), HasSubstr("not in its stream's order"));
}

// Two instructions change places and the streams are numbered anew. The only fault is that one reads a buffer
// that is not written yet.
TEST_F(ProgramFaults, ReadBeforeItIsWritten) {
  const std::size_t core = instr_of("layers.0.attention.core"),
                    out = instr_of("layers.0.attention.wo.product");
  std::swap(program_.instrs[core], program_.instrs[out]);
  renumber();
  for (Instr& i : program_.instrs)
    for (const Use& use : uses(i)) {  // live ranges for the new order
      Buffer& b = program_.buffers[use.operand.buffer.index()];
      b.first = std::min(b.first, static_cast<std::int32_t>(std::min(core, out)));
      b.last = std::max(b.last, static_cast<std::int32_t>(std::max(core, out)));
    }
  // Every buffer gets addresses of its own, so that nothing overlaps.
  Bytes end{};
  for (Buffer& b : program_.buffers) b.offset = end, end += b.bytes;
  program_.peak[0] = end;
  EXPECT_THAT(fault(program_), HasSubstr("before it is written"));
}

TEST_F(ProgramFaults, SumIntoWhatWasNeverSet) {
  std::get<instr::Gemm>(program_.instrs[instr_of("head.product")].op).accumulate = true;
  EXPECT_THAT(fault(program_), HasSubstr("before it is written"));
}

TEST_F(ProgramFaults, OutputThatIsNotWritten) {
  Buffer b;
  b.name = "extra";
  b.bytes = Bytes(4);
  b.offset = program_.peak[0];
  b.first = 0;
  b.last = static_cast<std::int32_t>(program_.instrs.size()) - 1;
  program_.peak[0] += b.bytes;
  program_.buffers.push_back(b);
  program_.outputs.push_back(
      {"extra", {BufferId(static_cast<std::int64_t>(program_.buffers.size()) - 1), Bytes(0), Bytes(4)}});
  EXPECT_THAT(fault(program_), HasSubstr("extra"));
}

TEST_F(ProgramFaults, OutputThatIsGoneAtTheEnd) {
  const Output& loss = program_.outputs.front();
  --program_.buffers[loss.operand.buffer.index()].last;
  EXPECT_NE(fault(program_), "");
}

TEST_F(ProgramFaults, OperandBeyondItsBuffer) {
  Instr& i = program_.instrs[instr_of("layers.0.ffn.swiglu")];
  i.out[0].offset = Bytes(4);
  EXPECT_THAT(fault(program_), HasSubstr("runs over"));
}

TEST_F(ProgramFaults, BufferAboveThePeak) {
  program_.peak[0] -= Bytes(1);
  EXPECT_THAT(fault(program_), HasSubstr("above the peak"));
}

}  // namespace
}  // namespace hyperrun::testing
