#include "runtime/ir/under_way.h"

#include <algorithm>
#include <string>

namespace hyperrun {

UnderWayByKind::UnderWayByKind(const Program& program, std::span<const TrafficKind> kinds)
    : result_(kinds.size()) {
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    const auto self = static_cast<std::int32_t>(i);
    if (instr.stream == StreamKind::kCube) cube_.push_back(self);
    if (instr.stream == StreamKind::kVector) vector_.push_back(self);
    const auto* c = std::get_if<instr::Collective>(&instr.op);
    if (c == nullptr) continue;
    const TrafficKind kind{std::string(name(c->kind)), program.mesh.to_string(c->axes)};
    const auto known = std::ranges::find(kinds, kind);
    if (known != kinds.end())
      communicating_.emplace_back(self, static_cast<std::int32_t>(known - kinds.begin()));
  }
  computing_.reserve(cube_.size() + vector_.size());
  before_.reserve(computing_.capacity());
}

const std::vector<UnderWay>& UnderWayByKind::measure(std::span<const Span> spans) {
  find_computing(spans);
  std::ranges::fill(result_, UnderWay{});
  for (const auto& [instr, kind] : communicating_) {
    const Span& span = spans[static_cast<std::size_t>(instr)];
    UnderWay& u = result_[static_cast<std::size_t>(kind)];
    const Nanos time(span.end - span.begin);
    u.time += time;
    u.exposed += time - Nanos(computed_before(span.end) - computed_before(span.begin));
  }
  return result_;
}

// Merges the spans of cube and vector, which are in order each, into disjoint times of computing.
void UnderWayByKind::find_computing(std::span<const Span> spans) {
  computing_.clear(), before_.clear();
  std::int64_t all = 0;
  const auto add = [&](const Span& span) {
    if (!computing_.empty() && span.begin <= computing_.back().end) {
      const std::int64_t more = span.end - computing_.back().end;
      if (more > 0) all += more, computing_.back().end = span.end;
      return;
    }
    before_.push_back(all);
    computing_.push_back(span);
    all += span.end - span.begin;
  };
  auto c = cube_.begin(), v = vector_.begin();
  const auto span_of = [&](std::int32_t i) -> const Span& { return spans[static_cast<std::size_t>(i)]; };
  while (c != cube_.end() || v != vector_.end()) {
    const bool cube = v == vector_.end() || (c != cube_.end() && span_of(*c).begin <= span_of(*v).begin);
    add(span_of(cube ? *c++ : *v++));
  }
}

std::int64_t UnderWayByKind::computed_before(std::int64_t time) const {
  const auto next = std::ranges::upper_bound(computing_, time, {}, &Span::begin);
  if (next == computing_.begin()) return 0;
  const auto last = static_cast<std::size_t>(next - computing_.begin()) - 1;
  return before_[last] + std::min(time, computing_[last].end) - computing_[last].begin;
}

}  // namespace hyperrun
