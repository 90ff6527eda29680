#include "runtime/model/text/tokenizer_json.h"

#include <algorithm>

#include "runtime/model/checkpoint/json_file.h"
#include "runtime/model/text/spelling.h"
#include "runtime/model/text/tokenizer.h"

namespace hyperrun {

using nlohmann::ordered_json;

namespace {

ordered_json special_token(std::string_view content, std::int32_t id) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

struct ModelOptions {
  ordered_json unk;
  bool characters;  // bytes are what is no token; else each character is a byte
};

ordered_json model(const std::vector<std::string>& tokens, const std::vector<Bpe::Merge>& merges,
                   const ModelOptions& options) {
  ordered_json vocab = ordered_json::object(), pairs = ordered_json::array();
  for (std::size_t id = 0; id < tokens.size(); ++id)
    // Entries are appended, because a lookup in an ordered object takes linear time.
    vocab.get_ref<ordered_json::object_t&>().emplace_back(tokens[id], id);
  for (const Bpe::Merge& merge : merges)
    pairs.push_back(tokens[static_cast<std::size_t>(merge.left)] + " " +
                    tokens[static_cast<std::size_t>(merge.right)]);
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", options.unk},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", options.characters},
          {"byte_fallback", options.characters},
          {"ignore_merges", false},
          {"vocab", std::move(vocab)},
          {"merges", std::move(pairs)}};
}

ordered_json byte_level() {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
}

ordered_json replace(std::string_view pattern, std::string_view content) {
  return {{"type", "Replace"}, {"pattern", {{"String", pattern}}}, {"content", content}};
}

ordered_json marks_for_blanks() {
  const ordered_json prepend = {{"type", "Prepend"}, {"prepend", kBlankMark}};
  return {{"type", "Sequence"}, {"normalizers", {prepend, replace(" ", kBlankMark)}}};
}

ordered_json blanks_for_marks() {
  const ordered_json strip = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
  return {{"type", "Sequence"},
          {"decoders",
           {replace(kBlankMark, " "), ordered_json{{"type", "ByteFallback"}}, ordered_json{{"type", "Fuse"}},
            strip}}};
}

ordered_json begin_template(const std::string& token, std::int32_t id) {
  const auto special = [&](int type) {
    return ordered_json{{"SpecialToken", {{"id", token}, {"type_id", type}}}};
  };
  const auto sequence = [](const char* name, int type) {
    return ordered_json{{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  const ordered_json ids = {{"id", token}, {"ids", {id}}, {"tokens", ordered_json::array({token})}};
  return {{"type", "TemplateProcessing"},
          {"single", {special(0), sequence("A", 0)}},
          {"pair", {special(0), sequence("A", 0), special(1), sequence("B", 1)}},
          {"special_tokens", {{token, ids}}}};
}

ordered_json root(ordered_json added_tokens) {
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", std::move(added_tokens)}};
}

}  // namespace

std::string byte_level_json(const TrainedBpe& trained) {
  std::vector<std::string> spelled(trained.tokens.size());
  std::ranges::transform(trained.tokens, spelled.begin(), printable);
  spelled[0] = kEndOfText;
  ordered_json file = root(ordered_json::array({special_token(kEndOfText, 0)}));
  file["normalizer"] = nullptr;
  file["pre_tokenizer"] = byte_level();
  file["post_processor"] = nullptr;
  file["decoder"] = byte_level();
  file["model"] = model(spelled, trained.merges, {nullptr, false});
  return file.dump(1) + "\n";
}

std::string sentence_piece_json(const std::vector<std::string>& tokens,
                                const std::vector<Bpe::Merge>& merges) {
  ordered_json added = ordered_json::array();
  for (std::int32_t id = 0; id < 3; ++id)
    added.push_back(special_token(tokens[static_cast<std::size_t>(id)], id));
  ordered_json file = root(std::move(added));
  file["normalizer"] = marks_for_blanks();
  file["pre_tokenizer"] = nullptr;
  file["post_processor"] = begin_template(tokens[1], 1);
  file["decoder"] = blanks_for_marks();
  file["model"] = model(tokens, merges, {tokens[0], true});
  return file.dump(1) + "\n";
}

}  // namespace hyperrun
