#include "runtime/model/checkpoint/surplus.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/joined.h"

namespace hyperrun {
namespace {

using Names = std::vector<std::string>;

bool any_has(const Names& names, std::string_view part) {
  return std::ranges::any_of(names, [&](const std::string& n) { return n.find(part) != std::string::npos; });
}

// Up to three of the names, and how many more there are.
std::string some_of(std::span<const std::string> names) {
  constexpr std::size_t kShown = 3;
  const std::string shown = joined(names.first(std::min(kShown, names.size())));
  return names.size() <= kShown ? shown : fmt::format("{} and {} more", shown, names.size() - kShown);
}

// The names after the first, as an addition to a sentence about the first.
std::string others_of(const Names& names) {
  const std::span<const std::string> rest = std::span(names).subspan(1);
  return rest.empty() ? "" : fmt::format("; so {} {}", rest.size() == 1 ? "is" : "are", some_of(rest));
}

// The prefix without which names of the checkpoint are all the missing ones.
std::optional<std::string> common_prefix(const Mismatch& m) {
  if (m.missing.empty()) return std::nullopt;
  for (const std::string& name : m.surplus) {
    if (!name.ends_with("." + m.missing.front())) continue;
    const std::string prefix = name.substr(0, name.size() - m.missing.front().size());
    const std::set<std::string> there(m.surplus.begin(), m.surplus.end());
    if (std::ranges::all_of(m.missing, [&](const std::string& n) { return there.contains(prefix + n); }))
      return prefix;
  }
  return std::nullopt;
}

// A part of a name, and what its tensor is about.
struct Hint {
  const char* part;
  const char* guess;
};
constexpr Hint kSurplusHints[] = {
    {"lora_", "these are of an adapter (LoRA): merge it into its model first"},
    {".qweight", "the weights are quantized (gptq or awq): take those that are not"},
    {".absmax", "the weights are quantized (bitsandbytes): take those that are not"},
    {"_proj.bias", "the checkpoint has biases: is it of a family that the job's model is not?"},
    {"_proj.weight_scale", "the weights are quantized: take those that are not"},
    {"q_norm.weight", "the checkpoint normalizes queries and keys, as Qwen3 does: is it of that family?"},
    {".experts.", "the checkpoint has experts: is it of a family that the job's model is not?"},
    {"vision", "the checkpoint has an encoder of pictures: take its text model alone"},
};

std::string guess(const Mismatch& m) {
  if (const auto prefix = common_prefix(m))
    return fmt::format("all names have \"{}\" before those of the model: take it off", *prefix);
  for (const Hint& hint : kSurplusHints)
    if (any_has(m.surplus, hint.part)) return hint.guess;
  if (m.missing == Names{"lm_head.weight"})
    return "the checkpoint has no head: if the head is the embedding, set \"tie_word_embeddings\": true in "
           "config.json and tied_head: true in the job's model";
  return "take a checkpoint of this model, or a job whose model is the checkpoint's";
}

}  // namespace

void Mismatch::refuse() const {
  if (missing.empty() && surplus.empty()) return;
  const Names& first = missing.empty() ? surplus : missing;
  std::string cause =
      missing.empty() ? "is in the checkpoint, and the job's model has no such tensor" + others_of(surplus)
                      : "the tensor is missing" + others_of(missing);
  if (!missing.empty() && !surplus.empty())
    cause +=
        fmt::format("; the checkpoint has {} that the model has not: {}", surplus.size(), some_of(surplus));
  throw Error(Code::kBadCheckpoint, cause).at(path + ": " + first.front()).fix(guess(*this));
}

}  // namespace hyperrun
