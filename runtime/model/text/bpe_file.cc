// Reads a BPE model of tokenizer.json.
#include <fmt/core.h>

#include <optional>
#include <utility>

#include "runtime/model/text/bpe.h"
#include "runtime/model/text/vocabulary_file.h"

namespace hyperrun {
namespace {

using nlohmann::json;

// Splits a merge: "left right", or ["left", "right"] in newer files.
std::pair<std::string, std::string> split_merge(const PipelineStep& step, const json& entry) {
  if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string())
    return {entry[0].get<std::string>(), entry[1].get<std::string>()};
  const std::string text = entry.is_string() ? entry.get<std::string>() : "";
  const std::size_t blank = text.find(' ');
  if (blank == std::string::npos || text.find(' ', blank + 1) != std::string::npos)
    throw step.fields().error("merges", entry.dump() + " is not a pair of tokens");
  return {text.substr(0, blank), text.substr(blank + 1)};
}

// A line of the files from which lists of merges were made; it is no merge.
bool is_version(const json& entry) {
  return entry.is_string() && entry.get_ref<const std::string&>().starts_with("#version");
}

std::vector<Bpe::Merge> read_merges(const PipelineStep& step, const Vocabulary& vocabulary,
                                    const std::string& prefix) {
  const json& list = step.fields().required("merges");
  if (!list.is_array()) throw step.fields().error("merges", "must be a list");
  if (list.size() > PairRanks::kMostRanks)
    throw step.fields()
        .error("merges", fmt::format("there are {} merges", list.size()))
        .legal(fmt::format("at most {}", PairRanks::kMostRanks));
  const auto id_of = [&](const std::string& token) {
    const std::int32_t id = vocabulary.id_of(token);
    if (id < 0 || token.empty())
      throw step.fields().error("merges", "\"" + token + "\" is not in the vocabulary");
    return id;
  };
  std::vector<Bpe::Merge> merges;
  merges.reserve(list.size());
  for (const json& entry : list) {
    if (is_version(entry)) continue;
    const auto [left, right] = split_merge(step, entry);
    const std::string inner = right.starts_with(prefix) ? right.substr(prefix.size()) : right;
    merges.push_back({id_of(left), id_of(right), id_of(left + inner)});
  }
  return merges;
}

// The token of what has none; -1 without one.
std::int32_t read_unk(const PipelineStep& step, const Vocabulary& vocabulary) {
  const std::string unk = step.fields().string("unk_token", "");
  if (step.fields().find("unk_token") == nullptr) return -1;
  const std::int32_t id = vocabulary.id_of(unk);
  if (id < 0) throw step.fields().error("unk_token", "\"" + unk + "\" is not in the vocabulary");
  return id;
}

}  // namespace

ReadModel read_bpe(const PipelineStep& step) {
  step.allow({"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
              "byte_fallback", "ignore_merges", "vocab", "merges"});
  const JsonFields& fields = step.fields();
  step.refuse_if(fields.number("dropout", 0) != 0, "dropout",
                 "null, or 0: the same text has the same ids, always");
  const auto vocabulary = std::make_shared<Vocabulary>(read_vocabulary(step));
  Bpe::Options options{.prefix = fields.string("continuing_subword_prefix", ""),
                       .suffix = fields.string("end_of_word_suffix", ""),
                       .unk = read_unk(step, *vocabulary),
                       .fuse_unk = fields.boolean("fuse_unk", false),
                       .byte_fallback = fields.boolean("byte_fallback", false),
                       .whole_words = fields.boolean("ignore_merges", false)};
  const std::vector<Bpe::Merge> merges = read_merges(step, *vocabulary, options.prefix);
  return {vocabulary, std::make_unique<Bpe>(vocabulary, merges, std::move(options))};
}

}  // namespace hyperrun
