#include "runtime/shard/redistribute_memo.h"

#include <utility>

namespace hyperrun {
namespace {

void append(std::string& text, std::int64_t number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void append(std::string& text, const Layout& layout) {
  for (const AxisList& axes : layout.dims) {
    for (const AxisId a : axes) text.push_back(static_cast<char>(a + 1));
    text.push_back('\0');
  }
  append(text, std::int64_t{layout.partial.bits} << 1 | static_cast<std::int64_t>(layout.reduction));
}

}  // namespace

const std::vector<RedistributionStep>& RedistributeMemo::between(TensorId t, const Layout& from,
                                                                 const Layout& to) {
  const std::int64_t element = size_of(graph_[t].dtype);
  std::string question;
  append(question, element);
  append(question, static_cast<std::int64_t>(graph_[t].dims.size()));
  for (const DimId d : graph_[t].dims) append(question, graph_[d].size);
  append(question, from);
  append(question, to);
  const auto known = known_.find(question);
  if (known != known_.end()) return known->second;
  auto steps = redistribute(graph_.shape(t), element, from, to, mesh_, unshared_);
  return known_.emplace(std::move(question), std::move(steps)).first->second;
}

}  // namespace hyperrun
