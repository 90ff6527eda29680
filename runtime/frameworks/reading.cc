#include "runtime/frameworks/reading.h"

#include <fmt/core.h>

#include <algorithm>

#include "runtime/base/joined.h"

namespace hyperrun::frameworks {
namespace {

const Finding* find(const std::vector<Finding>& findings, std::string_view field) {
  const auto at = std::ranges::find_if(findings, [&](const Finding& f) {
    return f.verdict == Verdict::kTaken && f.meaning.starts_with(field);
  });
  return at == findings.end() ? nullptr : &*at;
}

}  // namespace

void Reading::give_up(std::string_view name, const std::string& why) {
  for (Finding& f : findings)
    if (f.setting.name == name && f.verdict == Verdict::kTaken) f.verdict = Verdict::kGap, f.meaning = why;
}

void Reading::set_aside(std::string_view name, const std::string& why) {
  for (Finding& f : findings)
    if (f.setting.name == name && f.verdict == Verdict::kTaken)
      f.verdict = Verdict::kNoMatter, f.meaning = why;
}

std::string Reading::place(std::string_view field) const {
  const Finding* f = find(findings, field);
  return f == nullptr ? "" : f->setting.place;
}

std::string Reading::origin(std::string_view field) const {
  const Finding* f = find(findings, field);
  if (f == nullptr) return "";
  const std::string value = f->setting.has_value ? " " + f->setting.value : "";
  return fmt::format("{}{} ({})", f->setting.name, value, f->setting.place);
}

Error Reading::error(Code code, const std::string& cause, const std::vector<std::string_view>& fields) const {
  std::vector<std::string> origins;
  std::string where;
  for (const std::string_view field : fields) {
    std::string text = origin(field);
    if (text.empty()) continue;
    if (where.empty()) where = place(field);
    origins.push_back(std::move(text));
  }
  return Error(code, cause + (origins.empty() ? "" : "; see " + joined(origins))).at(where);
}

}  // namespace hyperrun::frameworks
