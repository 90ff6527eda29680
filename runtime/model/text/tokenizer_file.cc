// tokenizer.json, in which the byte string of a token is spelled with GPT-2's printable characters.
#include <set>
#include <utility>

#include "runtime/model/checkpoint/files.h"
#include "runtime/model/checkpoint/json_file.h"
#include "runtime/model/text/byte_map.h"
#include "runtime/model/text/tokenizer.h"
#include "runtime/model/text/unicode.h"

namespace hyperrun {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

std::string printable(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) append_utf8(text, kByteToChar[static_cast<unsigned char>(c)]);
  return text;
}

// False when a character stands for no byte.
bool to_bytes(std::string_view text, std::string& bytes) {
  for (std::size_t at = 0; at < text.size();) {
    const Char c = char_at(text, at);
    if (c.code >= kCharToByte.size() || kCharToByte[c.code] < 0) return false;
    bytes += static_cast<char>(kCharToByte[c.code]);
    at += c.bytes;
  }
  return true;
}

ordered_json byte_level() {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
}

ordered_json added_tokens(const Tokenizer& tokenizer) {
  ordered_json list = ordered_json::array();
  for (const std::int32_t id : tokenizer.special())
    list.push_back({{"id", id},
                    {"content", tokenizer.tokens()[static_cast<std::size_t>(id)]},
                    {"single_word", false},
                    {"lstrip", false},
                    {"rstrip", false},
                    {"normalized", false},
                    {"special", true}});
  return list;
}

ordered_json model(const Tokenizer& tokenizer) {
  const std::set<std::int32_t> special(tokenizer.special().begin(), tokenizer.special().end());
  std::vector<std::string> spelled;
  ordered_json vocab = ordered_json::object(), merges = ordered_json::array();
  for (const std::string& token : tokenizer.tokens()) {
    const auto id = static_cast<std::int32_t>(spelled.size());
    spelled.push_back(special.contains(id) ? token : printable(token));
    // Appended rather than looked up, which would be linear in an ordered object.
    vocab.get_ref<ordered_json::object_t&>().emplace_back(spelled.back(), id);
  }
  for (const Tokenizer::Merge& merge : tokenizer.merges())
    merges.push_back(spelled[static_cast<std::size_t>(merge.left)] + " " +
                     spelled[static_cast<std::size_t>(merge.right)]);
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"vocab", std::move(vocab)},
          {"merges", std::move(merges)}};
}

// Reading. What follows refuses every setting under which the same text would give other ids.

using Vocab = std::unordered_map<std::string, std::int32_t>;  // as spelled in the file

void refuse_if(bool condition, const JsonFields& fields, const char* field, const char* legal) {
  if (condition) throw fields.error(field, "the setting is not supported").legal(legal);
}

void check_pipeline(const JsonFields& root, const std::string& place) {
  refuse_if(root.find("normalizer") != nullptr, root, "normalizer", "null");
  const JsonFields pre(root.required("pre_tokenizer"), place + ": pre_tokenizer");
  refuse_if(pre.string("type", "") != "ByteLevel", pre, "type", "ByteLevel");
  refuse_if(pre.boolean("add_prefix_space", true), pre, "add_prefix_space", "false");
  refuse_if(!pre.boolean("use_regex", true), pre, "use_regex", "true");
  if (const json* post = root.find("post_processor")) {
    const JsonFields fields(*post, place + ": post_processor");
    refuse_if(fields.string("type", "") != "ByteLevel", fields, "type", "null, ByteLevel");
  }
}

void check_model(const JsonFields& model) {
  refuse_if(model.string("type", "BPE") != "BPE", model, "type", "BPE");
  refuse_if(model.number("dropout", 0) != 0, model, "dropout", "null");
  refuse_if(!model.string("continuing_subword_prefix", "").empty(), model, "continuing_subword_prefix",
            "null");
  refuse_if(!model.string("end_of_word_suffix", "").empty(), model, "end_of_word_suffix", "null");
  refuse_if(model.boolean("byte_fallback", false), model, "byte_fallback", "false");
  refuse_if(model.boolean("ignore_merges", false), model, "ignore_merges", "false");
}

Vocab read_vocab(const JsonFields& model) {
  const json& object = model.required("vocab");
  if (!object.is_object()) throw model.error("vocab", "must be a JSON object");
  Vocab vocab;
  for (const auto& [token, id] : object.items()) {
    // An id beyond the number of entries would leave a hole below it.
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > 0x7fffffffu)
      throw model.error("vocab", "the id of \"" + token + "\" is " + id.dump());
    vocab.emplace(token, id.get<std::int32_t>());
  }
  return vocab;
}

// Adds the special tokens to `vocab`, in which they may be already, and returns their ids.
std::set<std::int32_t> read_special(const JsonFields& root, const std::string& place, Vocab& vocab) {
  std::set<std::int32_t> special;
  const json* list = root.find("added_tokens");
  if (list == nullptr) return special;
  if (!list->is_array()) throw root.error("added_tokens", "must be a list");
  for (const json& entry : *list) {
    const JsonFields token(entry, place + ": added_tokens");
    for (const char* field : {"single_word", "lstrip", "rstrip"})
      refuse_if(token.boolean(field, false), token, field, "false");
    const std::string content = token.string("content", "");
    const std::int64_t id = token.integer("id");
    if (content.empty() || id < 0 || id > 0x7fffffff) throw token.error("id", "no token or no id");
    if (vocab.try_emplace(content, static_cast<std::int32_t>(id)).first->second != id)
      throw token.error("id", "\"" + content + "\" has another id in the vocabulary");
    special.insert(static_cast<std::int32_t>(id));
  }
  return special;
}

std::vector<std::string> tokens_by_id(const JsonFields& model, const Vocab& vocab,
                                      const std::set<std::int32_t>& special) {
  std::vector<std::string> tokens(vocab.size());
  for (const auto& [spelled, id] : vocab) {
    if (static_cast<std::size_t>(id) >= tokens.size() || !tokens[static_cast<std::size_t>(id)].empty())
      throw model.error("vocab", "ids must be 0 to " + std::to_string(tokens.size() - 1) + ", each once; \"" +
                                     spelled + "\" has " + std::to_string(id));
    std::string bytes;
    if (special.contains(id))
      bytes = spelled;
    else if (spelled.empty() || !to_bytes(spelled, bytes))
      throw model.error("vocab", "\"" + spelled + "\" is not in the printable form of bytes");
    tokens[static_cast<std::size_t>(id)] = std::move(bytes);
  }
  return tokens;
}

// "left right", or ["left", "right"] in newer files.
std::pair<std::string, std::string> split_merge(const JsonFields& model, const json& entry) {
  if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string())
    return {entry[0].get<std::string>(), entry[1].get<std::string>()};
  const std::string text = entry.is_string() ? entry.get<std::string>() : "";
  const std::size_t blank = text.find(' ');
  if (blank == std::string::npos) throw model.error("merges", entry.dump() + " is not a pair of tokens");
  return {text.substr(0, blank), text.substr(blank + 1)};
}

std::vector<Tokenizer::Merge> read_merges(const JsonFields& model, const Vocab& vocab,
                                          const std::set<std::int32_t>& special) {
  const json& list = model.required("merges");
  if (!list.is_array()) throw model.error("merges", "must be a list");
  const auto id_of = [&](const std::string& token) {
    const auto it = vocab.find(token);
    if (it == vocab.end() || special.contains(it->second))
      throw model.error("merges", "\"" + token + "\" is not in the vocabulary");
    return it->second;
  };
  std::vector<Tokenizer::Merge> merges;
  std::set<std::uint64_t> seen;
  for (const json& entry : list) {
    const auto [left, right] = split_merge(model, entry);
    merges.push_back({id_of(left), id_of(right), id_of(left + right)});
    if (!seen.insert(pair_key(merges.back().left, merges.back().right)).second)
      throw model.error("merges", entry.dump() + " occurs twice");
  }
  return merges;
}

// Without them not every text has ids.
void check_complete(const JsonFields& root, const JsonFields& model, const std::vector<std::string>& tokens,
                    const std::set<std::int32_t>& special) {
  std::set<char> bytes;
  bool end_of_text = false;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const bool is_special = special.contains(static_cast<std::int32_t>(id));
    if (!is_special && tokens[id].size() == 1) bytes.insert(tokens[id][0]);
    end_of_text |= is_special && tokens[id] == kEndOfText;
  }
  if (bytes.size() != 256)
    throw model.error("vocab", "has " + std::to_string(bytes.size()) + " of the 256 single bytes");
  if (!end_of_text) throw root.error("added_tokens", std::string(kEndOfText) + " is missing");
}

}  // namespace

void write_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& path) {
  const ordered_json root = {{"version", "1.0"},          {"truncation", nullptr},
                             {"padding", nullptr},        {"added_tokens", added_tokens(tokenizer)},
                             {"normalizer", nullptr},     {"pre_tokenizer", byte_level()},
                             {"post_processor", nullptr}, {"decoder", byte_level()},
                             {"model", model(tokenizer)}};
  write_file(path, root.dump(1) + "\n");
}

Tokenizer read_tokenizer(const std::filesystem::path& path) {
  const std::string place = path.string();
  const json file = read_json(path);
  const JsonFields root(file, place);
  check_pipeline(root, place);
  const JsonFields model(root.required("model"), place + ": model");
  check_model(model);
  Vocab vocab = read_vocab(model);
  const std::set<std::int32_t> special = read_special(root, place, vocab);
  std::vector<std::string> tokens = tokens_by_id(model, vocab, special);
  check_complete(root, model, tokens, special);
  std::vector<Tokenizer::Merge> merges = read_merges(model, vocab, special);
  return Tokenizer(std::move(tokens), std::move(merges), {special.begin(), special.end()});
}

}  // namespace hyperrun
