#include "runtime/advise/offload_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/base/joined.h"

namespace hyperrun {
namespace {

// The largest bytes of a category in `tier` at one time.
Bytes most(const Program& program, Category category, Tier tier) {
  std::vector<Bytes> change(program.instrs.size() + 2);
  for (const Buffer& b : program.buffers) {
    if (b.category != category || b.tier != tier || (!b.state && b.last < 0)) continue;
    change[b.state ? 0 : static_cast<std::size_t>(std::max(b.first, 0))] += b.bytes;
    if (!b.state) change[static_cast<std::size_t>(b.last) + 1] -= b.bytes;
  }
  Bytes now{}, highest{};
  for (const Bytes by : change) highest = std::max(highest, now += by);
  return highest;
}

Bytes moved(const Program& program, Tier tier) {
  Bytes bytes{};
  for (const Instr& instr : program.instrs)
    if (beyond_hbm(instr.op) == tier) bytes += instr.in[0].bytes;
  return bytes;
}

std::int64_t made_again(const Program& program) {
  return std::ranges::count_if(program.instrs, [&](const Instr& i) {
    return i.origin >= 0 && program.origins[static_cast<std::size_t>(i.origin)].ends_with(kMadeAgain);
  });
}

}  // namespace

std::string describe_offload(const Plan& plan, std::string_view program) {
  std::string words;
  for (const Tier tier : {Tier::kPool, Tier::kFlash}) {
    const Role& role = *std::ranges::max_element(plan.roles, {}, [&](const Role& r) { return r.peak(tier); });
    if (role.peak(tier).value == 0) continue;
    const Program& p = role.program(program);
    std::vector<std::string> parts;
    for (std::size_t c = 0; c < kCategories; ++c) {
      const auto category = static_cast<Category>(c);
      if (const Bytes bytes = most(p, category, tier); bytes.value > 0)
        parts.push_back(fmt::format("{} of {}", to_string(bytes), name(category)));
    }
    words +=
        fmt::format("{}at most {} of a device lie in {}{}, {} move there and back", words.empty() ? "" : "; ",
                    joined(parts), tier == Tier::kPool ? "the " : "", name(tier), to_string(moved(p, tier)));
  }
  if (words.empty()) words = "nothing lies beyond HBM";
  std::int64_t again = 0;
  for (const Role& role : plan.roles) again = std::max(again, made_again(role.program(program)));
  if (again > 0) words += fmt::format(", {} {} made again", again, again == 1 ? "tensor is" : "tensors are");
  return words;
}

}  // namespace hyperrun
