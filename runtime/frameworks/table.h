// The table of a framework: what each of its settings means. It is read in both directions, so that flags
// which hyperrun writes are those that it understands.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "runtime/frameworks/finding.h"
#include "runtime/frameworks/launch.h"

namespace hyperrun::frameworks {

using Slot = std::variant<std::monostate, Launch::Integer Launch::*, Launch::Real Launch::*,
                          Launch::Flag Launch::*, Launch::Words Launch::*>;

// A word of the framework for a word of ours.
struct Translation {
  std::string_view theirs, ours;
};

struct Row {
  std::string_view name;
  Verdict verdict = Verdict::kTaken;
  std::string_view meaning = {};  // Finding::meaning
  Slot slot = {};
  // The only words that the slot takes. Other words are gaps.
  std::span<const Translation> words = {};
  // False: the row is read only, because another row writes the slot.
  bool writes = true;
  // Values that say the same as leaving the setting out, with "|" between them. Only gaps have some.
  std::string_view neutral = {};
};

// Rows of the three kinds.
constexpr Row taken(std::string_view name, std::string_view field, Slot slot,
                    std::span<const Translation> words = {}) {
  return {name, Verdict::kTaken, field, slot, words};
}
constexpr Row alias(std::string_view name, std::string_view field, Slot slot,
                    std::span<const Translation> words = {}) {
  return {name, Verdict::kTaken, field, slot, words, false};
}
constexpr Row no_matter(std::string_view name, std::string_view why) {
  return {name, Verdict::kNoMatter, why, {}, {}, false};
}
constexpr Row gap(std::string_view name, std::string_view what, std::string_view neutral = {}) {
  return {name, Verdict::kGap, what, {}, {}, false, neutral};
}

class Table {
 public:
  // Rows may come in several parts. A name with a "*" stands for all settings that begin and end so and have
  // no row of their own; the first such row counts.
  explicit Table(std::vector<std::span<const Row>> parts);

  const Row* find(std::string_view name) const;
  std::vector<std::string_view> names() const;

  // Fills the launch and returns what came of each setting, in order. Throws kBadValue if a value is no
  // number where one belongs, and if two settings contradict each other; the message has both places.
  std::vector<Finding> read(const std::vector<Setting>& settings, Launch& launch) const;

  // The settings that say what the launch says, in the order of the table.
  std::vector<Setting> write(const Launch& launch) const;

 private:
  std::vector<std::span<const Row>> parts_;
  std::unordered_map<std::string_view, const Row*> by_name_;
  std::vector<const Row*> patterns_;
};

// A number as frameworks write it: "0.0003", "32".
std::string number_text(double v);

// Whether the value says that a flag is off: "false", "None", "null".
bool says_off(std::string_view value);

}  // namespace hyperrun::frameworks
