#include "runtime/model/text/tokenizer_pipeline.h"

namespace hyperrun {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

using Symbols = TokenizerParts::Symbols;

ordered_json byte_level(bool use_regex) {
  return {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

ordered_json llama3_split() {
  return {{"type", "Split"},
          {"pattern", {{"Regex", kLlama3Pattern}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

ordered_json pre_tokenizer(const TokenizerParts& parts) {
  if (parts.symbols == Symbols::kCharacters) return nullptr;
  if (parts.words == Words::kGpt2) return byte_level(true);
  return {{"type", "Sequence"}, {"pretokenizers", {llama3_split(), byte_level(false)}}};
}

ordered_json replace(std::string_view pattern, std::string_view content) {
  return {{"type", "Replace"}, {"pattern", {{"String", pattern}}}, {"content", content}};
}

ordered_json sentence_piece_normalizer() {
  const ordered_json prepend = {{"type", "Prepend"}, {"prepend", kBlankMark}};
  return {{"type", "Sequence"}, {"normalizers", {prepend, replace(" ", kBlankMark)}}};
}

ordered_json sentence_piece_decoder() {
  const ordered_json strip = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
  return {{"type", "Sequence"},
          {"decoders",
           {replace(kBlankMark, " "), ordered_json{{"type", "ByteFallback"}}, ordered_json{{"type", "Fuse"}},
            strip}}};
}

ordered_json special_token(std::string_view token, int type) {
  return {{"SpecialToken", {{"id", token}, {"type_id", type}}}};
}
ordered_json sequence(const char* name, int type) {
  return {{"Sequence", {{"id", name}, {"type_id", type}}}};
}

ordered_json post_processor(const Tokenizer& tokenizer) {
  if (tokenizer.begin_of_text() < 0) return nullptr;
  const std::string& begin = tokenizer.token(tokenizer.begin_of_text());
  const ordered_json ids = {
      {"id", begin}, {"ids", {tokenizer.begin_of_text()}}, {"tokens", ordered_json::array({begin})}};
  return {{"type", "TemplateProcessing"},
          {"single", {special_token(begin, 0), sequence("A", 0)}},
          {"pair", {special_token(begin, 0), sequence("A", 0), special_token(begin, 1), sequence("B", 1)}},
          {"special_tokens", {{begin, ids}}}};
}

// Reading: the functions below refuse every setting under which the same text would give other ids.

void check_byte_level(const JsonFields& step, bool use_regex) {
  refuse_if(step.string("type", "") != "ByteLevel", step, "type", "ByteLevel");
  refuse_if(step.boolean("add_prefix_space", true), step, "add_prefix_space", "false");
  refuse_if(step.boolean("use_regex", true) != use_regex, step, "use_regex", use_regex ? "true" : "false");
}

void check_split(const JsonFields& step) {
  refuse_if(step.string("type", "") != "Split", step, "type", "Split");
  refuse_if(step.required("pattern") != json(llama3_split()["pattern"]), step, "pattern",
            R"({"Regex": ")" + std::string(kLlama3Pattern) + R"("})");
  refuse_if(step.string("behavior", "") != "Isolated", step, "behavior", "Isolated");
  refuse_if(step.boolean("invert", false), step, "invert", "false");
}

Words read_pre_tokenizer(const JsonFields& root, const std::string& place) {
  const JsonFields pre(root.required("pre_tokenizer"), place);
  if (pre.string("type", "") != "Sequence") {
    check_byte_level(pre, true);
    return Words::kGpt2;
  }
  const json& steps = pre.required("pretokenizers");
  refuse_if(!steps.is_array() || steps.size() != 2, pre, "pretokenizers", "Split and ByteLevel");
  check_split(JsonFields(steps[0], place + ": pretokenizers"));
  check_byte_level(JsonFields(steps[1], place + ": pretokenizers"), false);
  return Words::kLlama3;
}

// The token before the text of a template, which has nothing behind it.
std::string read_template(const JsonFields& step) {
  constexpr const char* kLegal = "one special token before the sequence A, or none, and nothing behind it";
  const json& single = step.required("single");
  const bool is_list = single.is_array() && (single.size() == 1 || single.size() == 2);
  refuse_if(!is_list || single.back() != json(sequence("A", 0)), step, "single", kLegal);
  if (single.size() == 1) return "";
  const json::json_pointer id("/SpecialToken/id");
  refuse_if(!single[0].is_object() || !single[0].contains(id) || !single[0][id].is_string(), step, "single",
            kLegal);
  return single[0][id].get<std::string>();
}

std::string read_post_processor(const JsonFields& step, const std::string& place) {
  const std::string type = step.string("type", "");
  if (type == "ByteLevel") return "";  // changes offsets into the text, no ids
  if (type == "TemplateProcessing") return read_template(step);
  refuse_if(type != "Sequence", step, "type", "null, ByteLevel, TemplateProcessing, a Sequence of these");
  const json& steps = step.required("processors");
  refuse_if(!steps.is_array(), step, "processors", "a list");
  std::string begin;
  for (const json& inner : steps) {
    const JsonFields fields(inner, place + ": processors");
    refuse_if(fields.string("type", "") == "Sequence", fields, "type", "ByteLevel, TemplateProcessing");
    const std::string token = read_post_processor(fields, place);
    refuse_if(!token.empty() && !begin.empty(), step, "processors", "one TemplateProcessing");
    if (!token.empty()) begin = token;
  }
  return begin;
}

}  // namespace

void refuse_if(bool condition, const JsonFields& fields, const char* field, const std::string& legal) {
  if (condition) throw fields.error(field, "the setting is not supported").legal(legal);
}

Pipeline read_pipeline(const JsonFields& root, const std::string& place) {
  Pipeline pipeline;
  if (const json* normalizer = root.find("normalizer")) {
    const json known = sentence_piece_normalizer();
    refuse_if(*normalizer != known, root, "normalizer", "null, " + known.dump());
    refuse_if(root.find("pre_tokenizer") != nullptr, root, "pre_tokenizer", "null, with this normalizer");
    pipeline.symbols = Symbols::kCharacters;
  } else {
    pipeline.words = read_pre_tokenizer(root, place + ": pre_tokenizer");
  }
  if (const json* post = root.find("post_processor")) {
    const std::string at = place + ": post_processor";
    pipeline.begin_of_text = read_post_processor(JsonFields(*post, at), at);
  }
  return pipeline;
}

void write_pipeline(const Tokenizer& tokenizer, ordered_json& root) {
  const bool characters = tokenizer.parts().symbols == Symbols::kCharacters;
  root["normalizer"] = characters ? sentence_piece_normalizer() : nullptr;
  root["pre_tokenizer"] = pre_tokenizer(tokenizer.parts());
  root["post_processor"] = post_processor(tokenizer);
  root["decoder"] = characters ? sentence_piece_decoder() : byte_level(true);
}

}  // namespace hyperrun
