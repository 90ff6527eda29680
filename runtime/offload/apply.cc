#include "runtime/offload/apply.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "runtime/base/error.h"
#include "runtime/ir/row_counts.h"

namespace hyperrun {
namespace {

class Rewriting {
 public:
  Rewriting(Program& program, const std::vector<BufferUses>& uses, const Absences& absences, Tier tier)
      : program_(program), uses_(uses), tier_(tier), before_(program.instrs.size() + 1), behind_(before_) {
    std::map<std::int32_t, std::vector<Absence>> by_buffer;
    for (const Absence& a : absences.list) by_buffer[a.buffer].push_back(a);
    for (const std::int32_t home : absences.homes) by_buffer[home];
    for (auto& [buffer, list] : by_buffer)
      plan(buffer, list, std::ranges::binary_search(absences.homes, buffer));
    for (auto& [instr, list] : remakes_) std::ranges::sort(list, {}, &Remake::maker);
    for (std::vector<Transfer>& list : before_) std::ranges::stable_sort(list, {}, &Transfer::needed);
  }

  std::vector<std::int32_t> run() {
    std::vector<Instr> old = std::move(program_.instrs);
    program_.instrs.clear();
    std::vector<std::int32_t> where;
    emit(before_[0], old.front());
    for (std::size_t i = 0; i < old.size(); ++i) {
      Instr& instr = old[i];
      if (i > 0) emit(before_[i], instr);
      if (const auto here = remakes_.find(static_cast<std::int32_t>(i)); here != remakes_.end())
        for (const Remake& r : here->second) make_again(r, i, instr.pass);
      for (auto* list : {&instr.in, &instr.out})
        for (Operand& o : *list) o.buffer = stay_of(o.buffer, i);
      const Pass pass = instr.pass;
      where.push_back(static_cast<std::int32_t>(program_.instrs.size()));
      program_.instrs.push_back(std::move(instr));
      emit(behind_[i + 1], program_.instrs.back());
      HR_CHECK(program_.instrs.back().pass == pass);
    }
    for (Output& output : program_.outputs) HR_CHECK(!stays_.contains(output.operand.buffer.value));
    return where;
  }

 private:
  struct Transfer {
    bool store;
    std::int32_t of, stay, beyond;  // buffers: that which moves, here and there
    std::int32_t needed = 0;        // of a prefetch: the instruction that uses it
  };
  // Those that make what others of the same moment need come first, as they did.
  struct Remake {
    std::int32_t maker, buffer, stay;
    Instr instr;  // as it was
  };
  // From which instruction on a buffer of its own stands for a moved one.
  struct Stay {
    std::int32_t from, buffer;
  };

  std::int32_t new_buffer(Buffer buffer) {
    program_.buffers.push_back(std::move(buffer));
    return static_cast<std::int32_t>(program_.buffers.size()) - 1;
  }

  void plan(std::int32_t id, const std::vector<Absence>& list, bool home) {
    const Buffer original = program_.buffers[static_cast<std::size_t>(id)];
    const std::vector<Access>& accesses = uses_[static_cast<std::size_t>(id)].accesses;
    HR_CHECK(home || !original.state, original.name + " is state and has its place in HBM");
    Buffer stay = original;
    stay.state = false;
    std::int32_t beyond = home ? id : -1;  // -1: nothing was brought there yet
    if (home) program_.buffers[static_cast<std::size_t>(id)].tier = tier_;
    std::vector<Stay>& stays = stays_[id];
    std::size_t a = 0;
    bool dirty = false;
    const auto begin_stay = [&](std::int32_t from) {
      stay.name = original.name + "@" + std::to_string(stays.size() + 1);
      stays.push_back({from, !home && stays.empty() ? id : new_buffer(stay)});
    };
    if (list.empty() || list[0].after >= 0) begin_stay(0);
    for (std::int32_t k = -1; k < std::ssize(accesses); ++k) {
      if (k >= 0) dirty = dirty || accesses[static_cast<std::size_t>(k)].writes;
      if (a == list.size() || list[a].after != k) continue;
      const Absence& absence = list[a++];
      const bool again = k + 1 < std::ssize(accesses);
      const bool needed = again ? accesses[static_cast<std::size_t>(k) + 1].reads : home;
      HR_CHECK(absence.leaves < absence.returns, original.name + " comes back before it is gone");
      if (k >= 0 && dirty && needed && absence.maker < 0) {
        if (beyond < 0) beyond = new_buffer(there(original));
        behind_[static_cast<std::size_t>(absence.leaves) + 1].push_back(
            {true, id, stays.back().buffer, beyond});
        dirty = false;
      }
      if (!again) continue;
      begin_stay(std::max(absence.returns, 0));
      if (absence.maker >= 0)
        remakes_[absence.returns].push_back({absence.maker, id, stays.back().buffer,
                                             program_.instrs[static_cast<std::size_t>(absence.maker)]});
      else if (needed) {
        HR_CHECK(beyond >= 0, original.name + " is fetched and was brought nowhere");
        before_[static_cast<std::size_t>(std::max(absence.returns, 0))].push_back(
            {false, id, stays.back().buffer, beyond, accesses[static_cast<std::size_t>(k) + 1].instr});
      }
    }
  }

  Buffer there(const Buffer& original) const {
    Buffer b = original;
    b.tier = tier_;
    b.name += "@" + std::string(name(tier_));
    return b;
  }

  // What it makes besides goes where nobody looks.
  void make_again(const Remake& remake, std::size_t before, Pass pass) {
    Instr instr = remake.instr;
    for (Operand& o : instr.in) o.buffer = stay_of(o.buffer, before);
    for (Operand& o : instr.out)
      o.buffer = BufferId(o.buffer.value == remake.buffer ? remake.stay : aside(o.buffer));
    if (instr.scratch.buffer.valid()) instr.scratch.buffer = BufferId(aside(instr.scratch.buffer));
    instr.pass = pass;
    instr.origin = static_cast<std::int32_t>(program_.origins.size());
    program_.origins.push_back(program_.origins[static_cast<std::size_t>(remake.instr.origin)] +
                               std::string(kMadeAgain));
    program_.instrs.push_back(std::move(instr));
  }

  std::int32_t aside(BufferId buffer) {
    Buffer b = program_[buffer];
    b.name += kMadeAgain;
    return new_buffer(std::move(b));
  }

  BufferId stay_of(BufferId buffer, std::size_t instr) const {
    const auto found = stays_.find(buffer.value);
    if (found == stays_.end()) return buffer;
    const auto next =
        std::ranges::upper_bound(found->second, static_cast<std::int32_t>(instr), {}, &Stay::from);
    return BufferId(std::prev(next)->buffer);
  }

  void emit(const std::vector<Transfer>& list, const Instr& beside) {
    const Pass pass = beside.pass;
    for (const Transfer& t : list) {
      const Buffer& beyond = program_.buffers[static_cast<std::size_t>(t.beyond)];
      const Operand here{BufferId(t.stay), Bytes(0), beyond.bytes, DType::kF32, {}, beyond.empty},
          far{BufferId(t.beyond), Bytes(0), beyond.bytes, DType::kF32, {}, beyond.empty};
      const auto rows = counts_.find(t.of);
      const std::int64_t row = rows == counts_.end() ? 0 : rows->second.row;
      Instr instr;
      if (t.store)
        instr.op = instr::Store{tier_, beyond.bytes.value, row};
      else
        instr.op = instr::Prefetch{tier_, beyond.bytes.value, row};
      instr.stream = t.store ? StreamKind::kDmaOut : StreamKind::kDmaIn;
      instr.in = {t.store ? here : far};
      if (row > 0) instr.in.push_back(rows->second.counts);
      instr.out = {t.store ? far : here};
      instr.pass = pass;
      instr.origin = static_cast<std::int32_t>(program_.origins.size());
      program_.origins.push_back(beyond.name.substr(0, beyond.name.find('@')) +
                                 (t.store ? ".store" : ".prefetch"));
      program_.instrs.push_back(std::move(instr));
    }
  }

  Program& program_;
  std::map<std::int32_t, RowCounts> counts_ = counts_of_rows(program_);
  const std::vector<BufferUses>& uses_;
  Tier tier_;
  std::vector<std::vector<Transfer>> before_, behind_;   // by instruction; of `behind_` one further
  std::map<std::int32_t, std::vector<Stay>> stays_;      // of moved buffers
  std::map<std::int32_t, std::vector<Remake>> remakes_;  // by the instruction that they come before
};

}  // namespace

std::vector<std::int32_t> apply(Program& program, const std::vector<BufferUses>& uses,
                                const Absences& absences, Tier tier) {
  if (!absences.list.empty() || !absences.homes.empty())
    return Rewriting(program, uses, absences, tier).run();
  std::vector<std::int32_t> where(program.instrs.size());
  std::iota(where.begin(), where.end(), 0);
  return where;
}

}  // namespace hyperrun
