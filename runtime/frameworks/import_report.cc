#include <fmt/core.h>

#include <algorithm>

#include "runtime/frameworks/import.h"

namespace hyperrun::frameworks {
namespace {

constexpr std::size_t kWidestSetting = 46, kWidestMeaning = 58;

std::string cut(std::string text, std::size_t width) {
  for (char& c : text)
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  return text.size() <= width ? text : text.substr(0, width - 3) + "...";
}

bool has_flags(const Framework& f) {
  return f.kind == FrameworkKind::kMegatron || f.kind == FrameworkKind::kMindspeed;
}

class Report {
 public:
  Report(const ImportedRun& run, const std::string& path) : run_(run), path_(path) {}

  std::string all() {
    text_ = fmt::format("{}: {}, {} devices\n", path_, run_.framework->title, run_.job.supernode.devices);
    part(Verdict::kTaken, "taken as");
    part(Verdict::kNoMatter, "of no matter here");
    part(Verdict::kGap, "cannot be expressed");
    list(run_.left_out, "cannot be expressed, though no setting says it");
    list(run_.assumptions, "assumed");
    list(run_.notes, "not followed");
    text_ += fmt::format("\n{} settings: {} taken, {} of no matter, {} cannot be expressed\n",
                         run_.findings.size(), count(Verdict::kTaken), count(Verdict::kNoMatter),
                         count(Verdict::kGap));
    return std::move(text_);
  }

 private:
  std::ptrdiff_t count(Verdict v) const { return std::ranges::count(run_.findings, v, &Finding::verdict); }

  std::string shown(const Setting& s) const {
    const bool flag = has_flags(*run_.framework) && !s.name.starts_with("launcher");
    return cut(
        fmt::format("{}{}{}{}", flag ? "--" : "", s.name, s.has_value ? flag ? " " : ": " : "", s.value),
        kWidestSetting);
  }
  // The place without the file's name where it is the configuration itself.
  std::string place(const std::string& place) const {
    return place.starts_with(path_ + ":") ? place.substr(path_.size() + 1) : place;
  }

  void part(Verdict verdict, const char* title) {
    if (count(verdict) == 0) return;
    std::size_t width = 0, meaning = 0;
    for (const Finding& f : run_.findings)
      if (f.verdict == verdict)
        width = std::max(width, shown(f.setting).size()), meaning = std::max(meaning, f.meaning.size());
    meaning = std::min(meaning, kWidestMeaning);
    text_ += fmt::format("\n{}\n", title);
    for (const Finding& f : run_.findings)
      if (f.verdict == verdict)
        text_ += fmt::format("  {:<{}}  {:<{}}  {}\n", shown(f.setting), width, f.meaning, meaning,
                             place(f.setting.place));
  }

  void list(const std::vector<Assumption>& items, const char* title) {
    if (items.empty()) return;
    std::size_t width = 0;
    for (const Assumption& a : items) width = std::max(width, place(a.field).size());
    text_ += fmt::format("\n{}\n", title);
    for (const Assumption& a : items) text_ += fmt::format("  {:<{}}  {}\n", place(a.field), width, a.text);
  }

  const ImportedRun& run_;
  const std::string& path_;
  std::string text_;
};

}  // namespace

std::string import_report(const ImportedRun& run, const std::string& path) { return Report(run, path).all(); }

}  // namespace hyperrun::frameworks
