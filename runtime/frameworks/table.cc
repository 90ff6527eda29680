#include "runtime/frameworks/table.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <map>

#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/base/misspelt.h"
#include "runtime/base/overloaded.h"

namespace hyperrun::frameworks {
namespace {

// Suggestions compare with all names, which a file of ten thousand unknown flags is not worth.
constexpr int kMostSuggestions = 20;

// "10_000" and "1e9" are whole numbers in Python, TOML and JSON.
std::optional<double> number(std::string_view text) {
  std::string plain;
  for (const char c : text)
    if (c != '_') plain += c;
  if (plain.empty() || plain.front() == '_') return std::nullopt;
  char* end = nullptr;
  const double v = std::strtod(plain.c_str(), &end);
  if (end != plain.c_str() + plain.size() || !std::isfinite(v)) return std::nullopt;
  return v;
}

std::optional<bool> truth(std::string_view value) {
  for (const std::string_view yes : {"true", "True", "TRUE", "1", "yes", "on", "enable", "enabled"})
    if (value == yes) return true;
  for (const std::string_view no : {"false", "False", "FALSE", "0", "no", "off", "disable", "disabled"})
    if (value == no) return false;
  return std::nullopt;
}

bool is_absent(std::string_view value) {
  return value == "None" || value == "null" || value == "~" || value == "none" || value == "auto";
}

constexpr std::string_view kLauncher = "launcher ";

bool is_name(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::ranges::all_of(text, [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

// What gives a value that only a run would know: "$NAME", "$3", "$(command)".
std::string remedy_of(const std::string& unknown) {
  const std::string name = unknown.starts_with("$") ? unknown.substr(1) : unknown;
  if (is_name(name)) return fmt::format("say what {} is: --set {}=...", unknown, name);
  if (name.size() == 1 && name[0] >= '1' && name[0] <= '9')
    return fmt::format("give the arguments with which the script is called: --args \"...\"; {} is number {}",
                       unknown, name);
  return fmt::format(
      "write the value in place of {}; if a variable takes it from there, --set gives that variable's",
      unknown);
}

Error bad_value(const Setting& s, const std::string& what) {
  if (s.name.starts_with(kLauncher))
    return Error(Code::kBadValue, fmt::format("{} of the launcher is \"{}\", and {}",
                                              s.name.substr(kLauncher.size()), s.value, what))
        .at(s.place)
        .fix("give the number of devices: --devices N");
  const bool none = s.value.empty() && s.unknown.empty();
  Error error(Code::kBadValue, none ? fmt::format("{} has no value, and {}", s.name, what)
                                    : fmt::format("{} is \"{}\", and {}", s.name, s.value, what));
  error.at(s.place).fix(s.unknown.empty() ? "correct the value" : remedy_of(s.unknown.front()));
  return error;
}

// Reads the settings of a table one by one, and remembers which has filled a slot.
class TableReader {
 public:
  TableReader(const Table& table, Launch& launch) : table_(table), launch_(launch) {}

  Finding read(const Setting& s) {
    const Row* row = table_.find(s.name);
    if (row == nullptr) return {s, Verdict::kGap, unknown(s)};
    if (row->verdict != Verdict::kTaken) {
      const bool off = says_off(s.value) || (!row->neutral.empty() && is_neutral(s.value, row->neutral));
      if (row->verdict == Verdict::kGap && s.has_value && off)
        return {s, Verdict::kNoMatter, "as without it"};
      return {s, row->verdict, std::string(row->meaning)};
    }
    if (s.has_value && is_absent(s.value) && !has_word(*row, s.value))
      return {s, Verdict::kNoMatter, std::string(kLeftOpen)};
    const std::size_t given = s.value.size();
    const Setting& known = without_unset(s, std::holds_alternative<Launch::Flag Launch::*>(row->slot));
    Finding finding = take(known, *row);
    if (known.value.size() < given) {
      finding.setting = s;
      finding.meaning += fmt::format("; what {} adds is not known: --set NAME=...", joined(s.unknown));
    }
    return finding;
  }

 private:
  // The setting without the variables at its end that nobody has set. In "--flag $MORE" and "--size 8 $MORE"
  // they hold flags of their own, if anything. `stands_alone`: the flag needs no value, so that even the
  // first word may be one.
  const Setting& without_unset(const Setting& s, bool stands_alone) {
    if (s.unknown.empty()) return s;
    Setting known = s;
    for (std::size_t at = known.value.rfind('$'); at != std::string::npos; at = known.value.rfind('$')) {
      const bool is_word =
          known.value.find(' ', at) == std::string::npos && (at == 0 || known.value[at - 1] == ' ');
      if (!is_word || (at == 0 && !stands_alone)) break;
      known.value.resize(at == 0 ? 0 : at - 1);
    }
    if (known.value.size() == s.value.size()) return s;
    known.has_value = !known.value.empty();
    return shortened_.emplace_back(std::move(known));
  }

  static bool has_word(const Row& row, std::string_view value) {
    return std::ranges::any_of(row.words, [&](const Translation& t) { return t.theirs == value; });
  }

  // Whether the value equals one of the neutral ones, as a number or as a word.
  static bool is_neutral(const std::string& value, std::string_view neutral) {
    for (std::size_t begin = 0, end; begin <= neutral.size(); begin = end + 1) {
      end = std::min(neutral.find('|', begin), neutral.size());
      const std::string_view one = neutral.substr(begin, end - begin);
      const auto a = number(value), b = number(one);
      if (a && b ? *a == *b : value == one) return true;
    }
    return false;
  }

  std::string unknown(const Setting& s) {
    std::string text = "not known to hyperrun; what it changes is left out";
    if (suggestions_++ >= kMostSuggestions) return text;
    std::vector<std::string_view> names = table_.names();
    const std::string_view near = most_alike(s.name, names);
    return near.empty() ? text : text + fmt::format(" (did you mean {}?)", near);
  }

  Finding take(const Setting& s, const Row& row) {
    Finding finding{s, Verdict::kTaken, std::string(row.meaning)};
    std::string value = s.value;
    if (!row.words.empty()) {
      const auto word = std::ranges::find(row.words, std::string_view(value), &Translation::theirs);
      if (word == row.words.end()) {
        std::vector<std::string_view> legal;
        // Of several words for one thing the first is told.
        for (auto t = row.words.begin(); t != row.words.end(); ++t)
          if (std::ranges::find(row.words.begin(), t, t->ours, &Translation::ours) == t)
            legal.push_back(t->theirs);
        return {s, Verdict::kGap, fmt::format("hyperrun has {} alone", joined(legal))};
      }
      value = word->ours;
    }
    std::visit(
        Overloaded{[](std::monostate) {},
                   [&](Launch::Integer Launch::*m) { put(s, launch_.*m, integer(s, value), &(launch_.*m)); },
                   [&](Launch::Real Launch::*m) { put(s, launch_.*m, real(s, value), &(launch_.*m)); },
                   [&](Launch::Flag Launch::*m) { put(s, launch_.*m, flag(s, value), &(launch_.*m)); },
                   [&](Launch::Words Launch::*m) { put(s, launch_.*m, words(s, value), &(launch_.*m)); }},
        row.slot);
    return finding;
  }

  template <class T>
  void put(const Setting& s, std::optional<T>& slot, T value, const void* key) {
    if (slot && *slot != value) {
      const Setting* earlier = filled_by_[key];
      const std::string before =
          earlier == nullptr ? "something else" : fmt::format("{} {}", earlier->name, earlier->value);
      throw Error(Code::kBadValue,
                  fmt::format("{} {} contradicts {}{}", s.name, s.value, before,
                              earlier == nullptr ? "" : fmt::format(" at {}", earlier->place)))
          .at(s.place)
          .legal("one value")
          .fix("remove one of the two");
    }
    slot = std::move(value);
    filled_by_[key] = &s;
  }

  std::int32_t integer(const Setting& s, const std::string& text) const {
    const auto v = number(text);
    if (!v || *v != std::floor(*v) || std::abs(*v) > 2147483647.0)
      throw bad_value(s, "a whole number belongs there")
          .legal(s.name.starts_with(kLauncher) ? "1 to 1048576" : "-2147483648 to 2147483647");
    return static_cast<std::int32_t>(*v);
  }
  double real(const Setting& s, const std::string& text) const {
    const auto v = number(text);
    if (!v) throw bad_value(s, "a number belongs there").legal("a number");
    return *v;
  }
  bool flag(const Setting& s, const std::string& text) const {
    if (!s.has_value) return true;
    const auto v = truth(text);
    if (!v) throw bad_value(s, "true or false belongs there").legal("true, false");
    return *v;
  }
  std::string words(const Setting& s, const std::string& text) const {
    if (!s.has_value && text.empty())
      throw bad_value(s, "one belongs there").legal(fmt::format("{} VALUE", s.name));
    return text;
  }

  const Table& table_;
  Launch& launch_;
  std::map<const void*, const Setting*> filled_by_;
  std::deque<Setting> shortened_;  // settings that filled_by_ names, without unset variables
  int suggestions_ = 0;
};

}  // namespace

bool says_off(std::string_view value) {
  const auto v = truth(value);
  return (v && !*v) || is_absent(value) || value.empty() || value == "{}" || value == "[]" || value == "0.0";
}

std::string number_text(double v) {
  if (v == std::floor(v) && std::abs(v) < 1e15) return fmt::format("{}", static_cast<std::int64_t>(v));
  return fmt::format("{}", v);
}

Table::Table(std::vector<std::span<const Row>> parts) : parts_(std::move(parts)) {
  for (const std::span<const Row> part : parts_)
    for (const Row& row : part) {
      if (row.name.find('*') != std::string_view::npos)
        patterns_.push_back(&row);
      else
        HR_CHECK(by_name_.emplace(row.name, &row).second, std::string(row.name));
    }
}

const Row* Table::find(std::string_view name) const {
  const auto at = by_name_.find(name);
  if (at != by_name_.end()) return at->second;
  const auto fits = [&](const Row* row) {
    const std::size_t star = row->name.find('*');
    return name.size() + 1 >= row->name.size() && name.starts_with(row->name.substr(0, star)) &&
           name.ends_with(row->name.substr(star + 1));
  };
  const auto row = std::ranges::find_if(patterns_, fits);
  return row == patterns_.end() ? nullptr : *row;
}

std::vector<std::string_view> Table::names() const {
  std::vector<std::string_view> list;
  for (const std::span<const Row> part : parts_)
    for (const Row& row : part) list.push_back(row.name);
  return list;
}

std::vector<Finding> Table::read(const std::vector<Setting>& settings, Launch& launch) const {
  TableReader reader(*this, launch);
  std::vector<Finding> findings;
  findings.reserve(settings.size());
  for (const Setting& s : settings) findings.push_back(reader.read(s));
  return findings;
}

std::vector<Setting> Table::write(const Launch& launch) const {
  std::vector<Setting> list;
  for (const std::span<const Row> part : parts_)
    for (const Row& row : part) {
      if (row.verdict != Verdict::kTaken || !row.writes) continue;
      std::optional<std::string> value = std::visit(
          Overloaded{[](std::monostate) { return std::optional<std::string>(); },
                     [&](Launch::Integer Launch::*m) {
                       return launch.*m ? std::optional(std::to_string(*(launch.*m))) : std::nullopt;
                     },
                     [&](Launch::Real Launch::*m) {
                       return launch.*m ? std::optional(number_text(*(launch.*m))) : std::nullopt;
                     },
                     [&](Launch::Flag Launch::*m) {
                       return launch.*m ? std::optional<std::string>(*(launch.*m) ? "true" : "false")
                                        : std::nullopt;
                     },
                     [&](Launch::Words Launch::*m) { return launch.*m; }},
          row.slot);
      if (!value) continue;
      for (const Translation& t : row.words)
        if (t.ours == *value) {
          value = std::string(t.theirs);
          break;
        }
      const bool is_flag = std::holds_alternative<Launch::Flag Launch::*>(row.slot);
      list.push_back({std::string(row.name), *value, !is_flag, "", {}});
    }
  return list;
}

}  // namespace hyperrun::frameworks
