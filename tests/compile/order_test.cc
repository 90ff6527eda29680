#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/compile/compile.h"
#include "runtime/compile/events.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

// The instructions that gather a weight, and for each the first that reads what it made.
struct Gather {
  std::size_t at, used;
};

std::vector<Gather> gathers(const Program& program) {
  std::vector<Gather> list;
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    if (!std::holds_alternative<instr::Collective>(instr.op) || !program[instr.in[0].buffer].state) continue;
    std::size_t j = i + 1;
    const auto reads = [&](const Instr& other) {
      return std::any_of(other.in.begin(), other.in.end(),
                         [&](const Operand& o) { return o.buffer == instr.out[0].buffer; });
    };
    while (!reads(program.instrs[j])) ++j;
    list.push_back({i, j});
  }
  return list;
}

TEST(Order, TheNextWeightIsGatheredBeforeThisOneIsUsed) {
  const Compiled compiled = compile(small_job("dp:2 zero3"));
  const auto list = gathers(compiled.plan.roles[0].program("train"));
  ASSERT_GT(list.size(), 20u);
  for (std::size_t g = 0; g + 1 < list.size(); ++g) EXPECT_LT(list[g + 1].at, list[g].used) << g;
  for (std::size_t g = 0; g + 2 < list.size(); ++g)
    EXPECT_GT(list[g + 2].at, list[g].used) << "only one ahead";
}

bool writes(const Instr& instr, BufferId buffer) {
  return std::any_of(instr.out.begin(), instr.out.end(),
                     [&](const Operand& o) { return o.buffer == buffer; });
}

bool exchanges_sums(const Instr& instr) {
  const auto* c = std::get_if<instr::Collective>(&instr.op);
  return c != nullptr && c->kind == instr::CollectiveKind::kReduceScatter;
}

// The gradient of a product's input is exchanged beside the product that makes the gradient of its weight: no
// instruction of the cube behind the sum delays the exchange.
TEST(Order, SumsAreExchangedBesideTheNextProduct) {
  for (const char* layout : {"tpx:4 tpy:2", "tp:4 sp", "tpx:2 tpy:2 bf16"}) {
    const Compiled compiled = compile(small_job(layout));
    const Program& p = compiled.plan.roles[0].program("train");
    int seen = 0;
    for (std::size_t i = 0; i < p.instrs.size(); ++i) {
      if (!exchanges_sums(p.instrs[i])) continue;
      std::size_t made = i;
      while (made > 0 && !writes(p.instrs[made - 1], p.instrs[i].in[0].buffer)) --made;
      ASSERT_GT(made--, 0u);
      if (p.instrs[made].stream != StreamKind::kCube) continue;
      ++seen;
      for (std::size_t j = made + 1; j < i; ++j)
        EXPECT_NE(p.instrs[j].stream, StreamKind::kCube) << layout << ", instruction " << i;
      for (const Event& e : p.instrs[i].waits) {
        const bool later = e.stream == StreamKind::kCube && e.seq > p.instrs[made].seq;
        EXPECT_FALSE(later) << layout << ", instruction " << i;
      }
    }
    EXPECT_GT(seen, 8) << layout;
  }
}

// The vector stream does not wait for the exchange of a gradient: products come first.
TEST(Order, ExchangedGradientsAreAddedLate) {
  Job job = small_job("dp:4 zero3");
  job.training.batch = 16;
  job.training.micro_batches = 2;
  const Compiled compiled = compile(job);
  const Program& p = compiled.plan.roles[0].program("train");
  std::vector<int> products;  // between an exchange and its sum
  for (std::size_t i = 0; i < p.instrs.size(); ++i) {
    if (!std::holds_alternative<instr::Accumulate>(p.instrs[i].op)) continue;
    int between = 0;
    std::size_t j = i;
    while (j-- > 0 && !writes(p.instrs[j], p.instrs[i].in[0].buffer))
      between += p.instrs[j].stream == StreamKind::kCube ? 1 : 0;
    if (!exchanges_sums(p.instrs[j])) continue;
    std::size_t made = j;
    while (!writes(p.instrs[made - 1], p.instrs[j].in[0].buffer)) --made;
    if (p.instrs[made - 1].stream == StreamKind::kCube) products.push_back(between);
  }
  ASSERT_GT(products.size(), 20u);
  EXPECT_LE(std::ranges::count(products, 0), 2) << "the last of each micro-batch has none to come";
}

// Other stages wait for messages, but nobody waits for the collectives of the update, so these come after
// them.
TEST(Order, GradientsAreExchangedBehindTheLastMessage) {
  for (const char* layout : {"pp:2 dp:2 zero1", "pp:2 dp:2 tp:2 sp"}) {
    const Compiled compiled = compile(small_job(layout));
    const Program& last_stage = compiled.plan.roles[1].program("train");
    std::size_t sent = 0, exchanged = 0;
    for (std::size_t i = 0; i < last_stage.instrs.size(); ++i) {
      const Instr& instr = last_stage.instrs[i];
      if (instr.stream == StreamKind::kSend && instr.pass != Pass::kUpdate) sent = i;
      if (instr.stream == StreamKind::kComm && instr.pass == Pass::kUpdate && exchanged == 0) exchanged = i;
    }
    EXPECT_GT(sent, 0U) << layout;
    EXPECT_GT(exchanged, sent) << layout;
  }
}

// Tables and their slices are made on the stage that uses them. The only messages are activations and their
// gradients, one of each for each micro-batch.
TEST(Order, StagesSendNoTables) {
  for (const char* layout :
       {"pp:2 cp:2 tpx:2 tpy:2", "pp:2 cp:2", "pp:2 tpx:2 tpy:2", "pp:2 ring:2 tpx:2 tpy:2"}) {
    const Job job = small_job(layout);
    const Compiled compiled = compile(job);
    for (const Role& role : compiled.plan.roles) {
      const Program& p = role.program("train");
      std::string sent;
      std::int32_t messages = 0;
      for (const Instr& instr : p.instrs) {
        if (instr.stream != StreamKind::kSend || instr.pass == Pass::kUpdate) continue;
        ++messages;
        sent += " " + p.origins[static_cast<std::size_t>(instr.origin)];
      }
      EXPECT_EQ(messages, job.training.micro_batches) << layout << sent;
    }
  }
}

// If each buffer has addresses of its own, waits by buffer equal waits by address.
TEST(Events, OfBuffersApartAreThoseOfTheirAddresses) {
  for (const char* layout : {"dp:2 zero3", "tpx:2 tpy:2 bf16", "tp:4 sp"}) {
    const Job job = small_job(layout);
    const Program apart = unplaced_step(sharded_training(job), Mesh{job.parallel.mesh}, 3).program;
    Program by_address = apart;
    add_events(by_address);
    std::size_t waits = 0;
    for (std::size_t i = 0; i < apart.instrs.size(); ++i) {
      EXPECT_EQ(apart.instrs[i].seq, by_address.instrs[i].seq) << layout << " " << i;
      EXPECT_EQ(apart.instrs[i].waits, by_address.instrs[i].waits) << layout << " " << i;
      waits += apart.instrs[i].waits.size();
    }
    EXPECT_GT(waits, 100U);
  }
}

}  // namespace
}  // namespace hyperrun::testing
