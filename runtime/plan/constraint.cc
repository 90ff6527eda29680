#include "runtime/plan/constraint.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/base/whole_number.h"

namespace hyperrun {
namespace {

constexpr std::int32_t kMost = INT32_MAX;

Error usage(const std::string& text, const std::string& cause) {
  return Error(Code::kUsage, cause).at("--only " + text);
}

std::size_t dimension_of(const std::string& text, std::string_view key) {
  std::vector<std::string_view> keys;
  for (std::size_t d = 0; d < dimensions().size(); ++d) {
    if (dimensions()[d].key == key) return d;
    keys.push_back(dimensions()[d].key);
  }
  throw usage(text, fmt::format("there is no dimension \"{}\"", key))
      .legal(joined(keys))
      .fix("write DIMENSION=VALUE[,VALUE...], as in --only tp=4,8");
}

// The legal values of a dimension; for numbers their range.
std::string values_of(const Dimension& d) {
  std::vector<std::string> names;
  for (const std::int32_t v : d.named) names.push_back(d.text(v));
  return names.empty() ? fmt::format("whole numbers from 0 to {}", kMost) : joined(names);
}

std::int32_t value_of(const std::string& text, const Dimension& d, std::string_view value) {
  if (value.empty())
    throw usage(text, fmt::format("a value of \"{}\" is missing", d.key))
        .legal(values_of(d))
        .fix(fmt::format("write {}=VALUE[,VALUE...], as in --only tp=4,8", d.key));
  if (d.named.empty()) {
    std::int32_t n = 0;
    const std::string why = why_not_whole(value, 0, kMost, n);
    if (why.empty()) return n;
    throw usage(text, why).legal(values_of(d)).fix("write a size that an axis may have, as in --only tp=4,8");
  }
  for (const std::int32_t v : d.named)
    if (d.text(v) == value) return v;
  throw usage(text, "the dimension has no value \"" + std::string(value) + "\"")
      .legal(values_of(d))
      .fix("take one of these, or several with commas between");
}

}  // namespace

bool Constraint::met_by(const Strategy& s) const {
  return std::ranges::find(values, dimensions()[dimension].value(s)) != values.end();
}

Constraint constraint_of(const std::string& text) {
  const std::size_t equal = text.find('=');
  Constraint c{.text = text, .dimension = dimension_of(text, std::string_view(text).substr(0, equal))};
  std::string_view rest = equal == std::string::npos ? "" : std::string_view(text).substr(equal + 1);
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    c.values.push_back(value_of(text, dimensions()[c.dimension], rest.substr(0, comma)));
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
  }
  return c;
}

bool meets(std::span<const Constraint> constraints, const Strategy& s, DecidedAt decided_at) {
  return std::ranges::all_of(constraints, [&](const Constraint& c) {
    const Dimension& d = dimensions()[c.dimension];
    if (d.decided_at <= decided_at) return c.met_by(s);
    return d.may_have == nullptr || std::ranges::any_of(c.values, [&](auto v) { return d.may_have(s, v); });
  });
}

}  // namespace hyperrun
