// Reads and writes the vocabulary, merges and special tokens of tokenizer.json.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "runtime/base/joined.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/model/checkpoint/json_file.h"
#include "runtime/model/text/spelling.h"
#include "runtime/model/text/tokenizer.h"
#include "runtime/model/text/tokenizer_pipeline.h"

namespace hyperrun {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

using Symbols = TokenizerParts::Symbols;

// Tokens that end a document, for files that do not name theirs.
constexpr std::array<std::string_view, 3> kEndsOfText{kEndOfText, "<|end_of_text|>", "</s>"};

ordered_json added_tokens(const Tokenizer& tokenizer) {
  std::vector<std::int32_t> special = tokenizer.parts().special;
  std::ranges::sort(special);
  ordered_json list = ordered_json::array();
  for (const std::int32_t id : special)
    list.push_back({{"id", id},
                    {"content", tokenizer.token(id)},
                    {"single_word", false},
                    {"lstrip", false},
                    {"rstrip", false},
                    {"normalized", false},
                    {"special", true}});
  return list;
}

// Every token in the file's spelling.
std::vector<std::string> spelled_tokens(const TokenizerParts& parts) {
  std::vector<std::string> spelled(parts.tokens.size());
  std::ranges::transform(parts.tokens, spelled.begin(), [&](const std::string& token) {
    return parts.symbols == Symbols::kBytes ? printable(token) : with_marks(token);
  });
  for (const std::int32_t id : parts.special)
    spelled[static_cast<std::size_t>(id)] = parts.tokens[static_cast<std::size_t>(id)];
  if (parts.symbols == Symbols::kCharacters)
    for (std::size_t byte = 0; byte < parts.byte_ids.size(); ++byte)
      spelled[static_cast<std::size_t>(parts.byte_ids[byte])] = byte_name(static_cast<unsigned char>(byte));
  return spelled;
}

ordered_json model(const Tokenizer& tokenizer) {
  const TokenizerParts& parts = tokenizer.parts();
  const std::vector<std::string> spelled = spelled_tokens(parts);
  ordered_json vocab = ordered_json::object(), merges = ordered_json::array();
  for (std::size_t id = 0; id < spelled.size(); ++id)
    // Entries are appended, because a lookup in an ordered object takes linear time.
    vocab.get_ref<ordered_json::object_t&>().emplace_back(spelled[id], id);
  for (const Merge& merge : parts.merges)
    merges.push_back(spelled[static_cast<std::size_t>(merge.left)] + " " +
                     spelled[static_cast<std::size_t>(merge.right)]);
  const bool characters = parts.symbols == Symbols::kCharacters;
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", characters},
          {"ignore_merges", parts.whole_words},
          {"vocab", std::move(vocab)},
          {"merges", std::move(merges)}};
}

// Reading: the functions below refuse every setting under which the same text would give other ids.

using Vocab = std::unordered_map<std::string, std::int32_t>;  // ids by the file's spelling

void check_model(const JsonFields& model, Symbols symbols) {
  const bool characters = symbols == Symbols::kCharacters;
  refuse_if(model.string("type", "BPE") != "BPE", model, "type", "BPE");
  refuse_if(model.number("dropout", 0) != 0, model, "dropout", "null");
  refuse_if(!model.string("continuing_subword_prefix", "").empty(), model, "continuing_subword_prefix",
            "null");
  refuse_if(!model.string("end_of_word_suffix", "").empty(), model, "end_of_word_suffix", "null");
  refuse_if(model.boolean("byte_fallback", false) != characters, model, "byte_fallback",
            characters ? "true, with this normalizer" : "false, without a normalizer");
  refuse_if(characters && model.boolean("ignore_merges", false), model, "ignore_merges", "false");
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
std::set<std::int32_t> read_special(const JsonFields& root, const std::string& place, Symbols symbols,
                                    Vocab& vocab) {
  std::set<std::int32_t> special;
  const json* list = root.find("added_tokens");
  if (list == nullptr) return special;
  if (!list->is_array()) throw root.error("added_tokens", "must be a list");
  for (const json& entry : *list) {
    const JsonFields token(entry, place + ": added_tokens");
    for (const char* field : {"single_word", "lstrip", "rstrip"})
      refuse_if(token.boolean(field, false), token, field, "false");
    // A normalized token would be matched after the normalizer, with a blank before it.
    refuse_if(symbols == Symbols::kCharacters && token.boolean("normalized", false), token, "normalized",
              "false");
    const std::string content = token.string("content", "");
    const std::int64_t id = token.integer("id");
    if (content.empty() || id < 0 || id > 0x7fffffff) throw token.error("id", "no token or no id");
    if (vocab.try_emplace(content, static_cast<std::int32_t>(id)).first->second != id)
      throw token.error("id", "\"" + content + "\" has another id in the vocabulary");
    special.insert(static_cast<std::int32_t>(id));
  }
  return special;
}

// The bytes of a token, from its spelling.
std::string read_token(const JsonFields& model, const std::string& spelled, Symbols symbols) {
  if (symbols == Symbols::kCharacters) {
    const std::optional<unsigned char> byte = byte_of_name(spelled);
    return byte ? std::string(1, static_cast<char>(*byte)) : without_marks(spelled);
  }
  std::string bytes;
  if (spelled.empty() || !to_bytes(spelled, bytes))
    throw model.error("vocab", "\"" + spelled + "\" is not in the printable form of bytes");
  return bytes;
}

std::vector<std::string> tokens_by_id(const JsonFields& model, const Vocab& vocab, Symbols symbols,
                                      const std::set<std::int32_t>& special) {
  std::vector<std::string> tokens(vocab.size());
  for (const auto& [spelled, id] : vocab) {
    if (static_cast<std::size_t>(id) >= tokens.size() || !tokens[static_cast<std::size_t>(id)].empty())
      throw model.error("vocab", fmt::format("ids must be 0 to {}, each once; \"{}\" has {}",
                                             tokens.size() - 1, spelled, id));
    if (spelled.empty()) throw model.error("vocab", fmt::format("the token {} is empty", id));
    tokens[static_cast<std::size_t>(id)] =
        special.contains(id) ? spelled : read_token(model, spelled, symbols);
  }
  return tokens;
}

// The token of each byte. All must exist, else some texts would have no ids.
std::array<std::int32_t, 256> find_bytes(const JsonFields& model, const Vocab& vocab, Symbols symbols,
                                         const std::set<std::int32_t>& special) {
  std::array<std::int32_t, 256> ids{};
  int found = 0;
  for (std::size_t byte = 0; byte < ids.size(); ++byte) {
    const auto value = static_cast<unsigned char>(byte);
    const auto it =
        vocab.find(symbols == Symbols::kBytes ? printable({reinterpret_cast<const char*>(&value), 1})
                                              : byte_name(value));
    if (it == vocab.end() || special.contains(it->second)) continue;
    ids[byte] = it->second;
    ++found;
  }
  if (found != 256) throw model.error("vocab", fmt::format("has {} of the 256 single bytes", found));
  return ids;
}

std::int32_t find_end_of_text(const JsonFields& root, const Vocab& vocab,
                              const std::set<std::int32_t>& special) {
  for (const std::string_view name : kEndsOfText) {
    const auto it = vocab.find(std::string(name));
    if (it != vocab.end() && special.contains(it->second)) return it->second;
  }
  throw root.error("added_tokens", "no token ends a document").legal(joined(kEndsOfText));
}

std::int32_t find_begin_of_text(const JsonFields& root, const std::string& name, const Vocab& vocab,
                                const std::set<std::int32_t>& special) {
  if (name.empty()) return -1;
  const auto it = vocab.find(name);
  if (it == vocab.end() || !special.contains(it->second))
    throw root.error("post_processor", "\"" + name + "\" is none of the added tokens");
  return it->second;
}

// Splits a merge: "left right", or ["left", "right"] in newer files.
std::pair<std::string, std::string> split_merge(const JsonFields& model, const json& entry) {
  if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string())
    return {entry[0].get<std::string>(), entry[1].get<std::string>()};
  const std::string text = entry.is_string() ? entry.get<std::string>() : "";
  const std::size_t blank = text.find(' ');
  if (blank == std::string::npos) throw model.error("merges", entry.dump() + " is not a pair of tokens");
  return {text.substr(0, blank), text.substr(blank + 1)};
}

std::vector<Merge> read_merges(const JsonFields& model, const Vocab& vocab,
                               const std::set<std::int32_t>& special) {
  const json& list = model.required("merges");
  if (!list.is_array()) throw model.error("merges", "must be a list");
  const auto id_of = [&](const std::string& token) {
    const auto it = vocab.find(token);
    if (it == vocab.end() || special.contains(it->second))
      throw model.error("merges", "\"" + token + "\" is not in the vocabulary");
    return it->second;
  };
  std::vector<Merge> merges;
  std::set<std::uint64_t> seen;
  for (const json& entry : list) {
    const auto [left, right] = split_merge(model, entry);
    merges.push_back({id_of(left), id_of(right), id_of(left + right)});
    if (!seen.insert(pair_key(merges.back().left, merges.back().right)).second)
      throw model.error("merges", entry.dump() + " occurs twice");
  }
  return merges;
}

}  // namespace

void write_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& path) {
  ordered_json root = {{"version", "1.0"},
                       {"truncation", nullptr},
                       {"padding", nullptr},
                       {"added_tokens", added_tokens(tokenizer)}};
  write_pipeline(tokenizer, root);
  root["model"] = model(tokenizer);
  write_file(path, root.dump(1) + "\n");
}

Tokenizer read_tokenizer(const std::filesystem::path& path) {
  const std::string place = path.string();
  const json file = read_json(path);
  const JsonFields root(file, place);
  const Pipeline pipeline = read_pipeline(root, place);
  const JsonFields model(root.required("model"), place + ": model");
  check_model(model, pipeline.symbols);
  Vocab vocab = read_vocab(model);
  const std::set<std::int32_t> special = read_special(root, place, pipeline.symbols, vocab);
  TokenizerParts parts;
  parts.symbols = pipeline.symbols;
  parts.words = pipeline.words;
  parts.whole_words = model.boolean("ignore_merges", false);
  parts.tokens = tokens_by_id(model, vocab, pipeline.symbols, special);
  parts.byte_ids = find_bytes(model, vocab, pipeline.symbols, special);
  parts.end_of_text = find_end_of_text(root, vocab, special);
  parts.begin_of_text = find_begin_of_text(root, pipeline.begin_of_text, vocab, special);
  parts.merges = read_merges(model, vocab, special);
  parts.special = {special.begin(), special.end()};
  return Tokenizer(std::move(parts));
}

}  // namespace hyperrun
