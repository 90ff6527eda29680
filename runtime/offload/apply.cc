#include "runtime/offload/apply.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "runtime/base/error.h"
#include "runtime/ir/row_counts.h"

namespace hyperrun {
namespace {

class OffloadRewriter {
 public:
  OffloadRewriter(Program& program, const std::vector<BufferUses>& uses, const OffloadPlan& plan, Tier tier)
      : program_(program), uses_(uses), tier_(tier), before_(program.instrs.size() + 1), after_(before_) {
    std::map<std::int32_t, std::vector<Eviction>> by_buffer;
    for (const Eviction& a : plan.evictions) by_buffer[a.buffer].push_back(a);
    for (const std::int32_t state : plan.offloaded_state) by_buffer[state];
    for (auto& [buffer, list] : by_buffer)
      split(buffer, list, std::ranges::binary_search(plan.offloaded_state, buffer));
    for (auto& [instr, list] : remats_) std::ranges::sort(list, {}, &Rematerialization::producer);
    for (std::vector<Transfer>& list : before_) std::ranges::stable_sort(list, {}, &Transfer::needed);
  }

  std::vector<std::int32_t> run() {
    std::vector<Instr> old = std::move(program_.instrs);
    program_.instrs.clear();
    std::vector<std::int32_t> positions;
    emit(before_[0], old.front());
    for (std::size_t i = 0; i < old.size(); ++i) {
      Instr& instr = old[i];
      if (i > 0) emit(before_[i], instr);
      if (const auto here = remats_.find(static_cast<std::int32_t>(i)); here != remats_.end())
        for (const Rematerialization& r : here->second) rematerialize(r, i, instr.pass);
      for (auto* list : {&instr.in, &instr.out})
        for (Operand& o : *list) o.buffer = live_range_of(o.buffer, i);
      const Pass pass = instr.pass;
      positions.push_back(static_cast<std::int32_t>(program_.instrs.size()));
      program_.instrs.push_back(std::move(instr));
      emit(after_[i + 1], program_.instrs.back());
      HR_CHECK(program_.instrs.back().pass == pass);
    }
    for (Output& output : program_.outputs) HR_CHECK(!live_ranges_.contains(output.operand.buffer.value));
    return positions;
  }

 private:
  struct Transfer {
    bool store;
    std::int32_t original;     // buffer
    std::int32_t live_range;   // buffer in HBM
    std::int32_t tier_buffer;  // buffer in the lower tier
    std::int32_t needed = 0;   // prefetch: the instruction that uses it
  };
  // Rematerializations before one instruction run in the order of their producers: one may read another's
  // result.
  struct Rematerialization {
    std::int32_t producer;
    std::int32_t buffer;      // the original
    std::int32_t live_range;  // buffer that gets the result
    Instr instr;              // the producer before it was rewritten
  };
  // One part of a split live range: `buffer` replaces the original from instruction `from` on.
  struct LiveRange {
    std::int32_t from, buffer;
  };

  std::int32_t new_buffer(Buffer buffer) {
    program_.buffers.push_back(std::move(buffer));
    return static_cast<std::int32_t>(program_.buffers.size()) - 1;
  }

  // Divides the live range of a buffer at its evictions and notes the transfers between the parts.
  void split(std::int32_t id, const std::vector<Eviction>& list, bool offloaded) {
    const Buffer original = program_.buffers[static_cast<std::size_t>(id)];
    const std::vector<Access>& accesses = uses_[static_cast<std::size_t>(id)].accesses;
    HR_CHECK(offloaded || !original.state, original.name + " is state with an offset in HBM");
    Buffer copy = original;
    copy.state = false;
    std::int32_t tier_buffer = offloaded ? id : -1;  // -1: nothing has been stored yet
    if (offloaded) program_.buffers[static_cast<std::size_t>(id)].tier = tier_;
    std::vector<LiveRange>& live_ranges = live_ranges_[id];
    std::size_t a = 0;
    bool dirty = false;
    const auto begin_live_range = [&](std::int32_t from) {
      copy.name = original.name + "@" + std::to_string(live_ranges.size() + 1);
      live_ranges.push_back({from, !offloaded && live_ranges.empty() ? id : new_buffer(copy)});
    };
    if (list.empty() || list[0].after >= 0) begin_live_range(0);
    for (std::int32_t k = -1; k < std::ssize(accesses); ++k) {
      if (k >= 0) dirty = dirty || accesses[static_cast<std::size_t>(k)].writes;
      if (a == list.size() || list[a].after != k) continue;
      const Eviction& eviction = list[a++];
      const bool again = k + 1 < std::ssize(accesses);
      const bool needed = again ? accesses[static_cast<std::size_t>(k) + 1].reads : offloaded;
      HR_CHECK(eviction.leaves < eviction.returns, original.name + " returns before it has left");
      if (k >= 0 && dirty && needed && eviction.producer < 0) {
        if (tier_buffer < 0) tier_buffer = new_buffer(in_tier(original));
        after_[static_cast<std::size_t>(eviction.leaves) + 1].push_back(
            {true, id, live_ranges.back().buffer, tier_buffer});
        dirty = false;
      }
      if (!again) continue;
      begin_live_range(std::max(eviction.returns, 0));
      if (eviction.producer >= 0)
        remats_[eviction.returns].push_back({eviction.producer, id, live_ranges.back().buffer,
                                             program_.instrs[static_cast<std::size_t>(eviction.producer)]});
      else if (needed) {
        HR_CHECK(tier_buffer >= 0, original.name + " is fetched but was never stored");
        before_[static_cast<std::size_t>(std::max(eviction.returns, 0))].push_back(
            {false, id, live_ranges.back().buffer, tier_buffer,
             accesses[static_cast<std::size_t>(k) + 1].instr});
      }
    }
  }

  Buffer in_tier(const Buffer& original) const {
    Buffer b = original;
    b.tier = tier_;
    b.name += "@" + std::string(name(tier_));
    return b;
  }

  // The copy's other outputs and its scratch memory get buffers that nothing reads.
  void rematerialize(const Rematerialization& remat, std::size_t before, Pass pass) {
    Instr instr = remat.instr;
    for (Operand& o : instr.in) o.buffer = live_range_of(o.buffer, before);
    for (Operand& o : instr.out)
      o.buffer = BufferId(o.buffer.value == remat.buffer ? remat.live_range : scratch_copy(o.buffer));
    if (instr.scratch.buffer.valid()) instr.scratch.buffer = BufferId(scratch_copy(instr.scratch.buffer));
    instr.pass = pass;
    instr.origin = static_cast<std::int32_t>(program_.origins.size());
    program_.origins.push_back(program_.origins[static_cast<std::size_t>(remat.instr.origin)] +
                               std::string(kMadeAgain));
    program_.instrs.push_back(std::move(instr));
  }

  std::int32_t scratch_copy(BufferId buffer) {
    Buffer b = program_[buffer];
    b.name += kMadeAgain;
    return new_buffer(std::move(b));
  }

  BufferId live_range_of(BufferId buffer, std::size_t instr) const {
    const auto found = live_ranges_.find(buffer.value);
    if (found == live_ranges_.end()) return buffer;
    const auto next =
        std::ranges::upper_bound(found->second, static_cast<std::int32_t>(instr), {}, &LiveRange::from);
    return BufferId(std::prev(next)->buffer);
  }

  void emit(const std::vector<Transfer>& list, const Instr& beside) {
    const Pass pass = beside.pass;
    for (const Transfer& t : list) {
      const Buffer& tier_buffer = program_.buffers[static_cast<std::size_t>(t.tier_buffer)];
      const Operand here{BufferId(t.live_range), Bytes(0), tier_buffer.bytes, DType::kF32, {},
                         tier_buffer.empty},
          lower{BufferId(t.tier_buffer), Bytes(0), tier_buffer.bytes, DType::kF32, {}, tier_buffer.empty};
      const auto rows = counts_.find(t.original);
      const std::int64_t row = rows == counts_.end() ? 0 : rows->second.row;
      Instr instr;
      if (t.store)
        instr.op = instr::Store{tier_, tier_buffer.bytes.value, row};
      else
        instr.op = instr::Prefetch{tier_, tier_buffer.bytes.value, row};
      instr.stream = t.store ? StreamKind::kDmaOut : StreamKind::kDmaIn;
      instr.in = {t.store ? here : lower};
      if (row > 0) instr.in.push_back(rows->second.counts);
      instr.out = {t.store ? lower : here};
      instr.pass = pass;
      instr.origin = static_cast<std::int32_t>(program_.origins.size());
      program_.origins.push_back(tier_buffer.name.substr(0, tier_buffer.name.find('@')) +
                                 (t.store ? ".store" : ".prefetch"));
      program_.instrs.push_back(std::move(instr));
    }
  }

  Program& program_;
  std::map<std::int32_t, RowCounts> counts_ = counts_of_rows(program_);
  const std::vector<BufferUses>& uses_;
  Tier tier_;
  std::vector<std::vector<Transfer>> before_;                   // by instruction
  std::vector<std::vector<Transfer>> after_;                    // by instruction + 1: [0] is before the first
  std::map<std::int32_t, std::vector<LiveRange>> live_ranges_;  // by evicted buffer
  std::map<std::int32_t, std::vector<Rematerialization>> remats_;  // by the instruction that follows them
};

}  // namespace

std::vector<std::int32_t> apply(Program& program, const std::vector<BufferUses>& uses,
                                const OffloadPlan& plan, Tier tier) {
  if (!plan.evictions.empty() || !plan.offloaded_state.empty())
    return OffloadRewriter(program, uses, plan, tier).run();
  std::vector<std::int32_t> positions(program.instrs.size());
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

}  // namespace hyperrun
