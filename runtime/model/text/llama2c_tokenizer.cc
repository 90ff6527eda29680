#include "runtime/model/text/llama2c_tokenizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/model/text/spelling.h"
#include "runtime/model/text/tokenizer_json.h"

namespace hyperrun {
namespace {

constexpr std::int32_t kFirstByte = 3, kFirstPiece = kFirstByte + 256;
constexpr std::array<std::string_view, 3> kSpecial{"<unk>", "<s>", "</s>"};

struct Piece {
  float score;
  std::string text;
};

class Reader {
 public:
  Reader(const std::filesystem::path& path, std::int32_t count)
      : place_(path.string()), content_(read_file(path, Code::kBadTokenizer)), count_(count) {}

  std::vector<Piece> pieces() {
    const auto longest = next<std::int32_t>(0);
    std::vector<Piece> pieces;
    for (std::int32_t id = 0; id < count_; ++id) {
      const auto score = next<float>(id);
      if (!std::isfinite(score)) throw error(fmt::format("the score of token {} is no number", id));
      pieces.push_back({score, text(id, longest)});
    }
    if (at_ != content_.size())
      throw error(fmt::format("it goes on behind the {} tokens of the model's vocabulary, for {} bytes",
                              count_, content_.size() - at_));
    return pieces;
  }

  Error error(std::string cause) const {
    return Error(Code::kBadTokenizer, std::move(cause))
        .at(place_)
        .fix("give the tokenizer.bin that the model was trained with, as llama2.c's tokenizer.py exports it");
  }

 private:
  std::string_view take(std::size_t bytes, std::int32_t id) {
    if (content_.size() - at_ < bytes)
      throw error(fmt::format("it ends within token {} of the {} that the model has", id, count_));
    return std::string_view(content_).substr(std::exchange(at_, at_ + bytes), bytes);
  }

  template <class T>
  T next(std::int32_t id) {
    T value;
    std::memcpy(&value, take(sizeof value, id).data(), sizeof value);
    return value;
  }

  std::string text(std::int32_t id, std::int32_t longest) {
    const auto length = next<std::int32_t>(id);
    if (length < 1 || length > longest)
      throw error(fmt::format("token {} has a length of {}", id, length))
          .legal(fmt::format("1 to {}, the length of the longest token by the file's first word", longest));
    std::string text(take(static_cast<std::size_t>(length), id));
    if (find_invalid(text) < text.size()) throw error(fmt::format("token {} is no text in UTF-8", id));
    return text;
  }

  std::string place_, content_;
  std::int32_t count_;  // number of tokens
  std::size_t at_ = 0;
};

// llama2.c prints line breaks round the tokens that begin and end a text.
std::string_view without_breaks(std::string_view text) {
  return text.size() > 2 && text.starts_with('\n') && text.ends_with('\n') ? text.substr(1, text.size() - 2)
                                                                           : text;
}

void check_first(const std::vector<Piece>& pieces, const Reader& reader) {
  for (std::int32_t id = 0; id < kFirstPiece; ++id) {
    const std::string expected = id < kFirstByte ? std::string(kSpecial[static_cast<std::size_t>(id)])
                                                 : byte_name(static_cast<unsigned char>(id - kFirstByte));
    const std::string& text = pieces[static_cast<std::size_t>(id)].text;
    if (without_breaks(text) != expected)
      throw reader.error(fmt::format("token {} is \"{}\"", id, text)).legal(expected);
  }
}

using Ids = std::unordered_map<std::string_view, std::int32_t>;

Ids ids_of(const std::vector<Piece>& pieces, const Reader& reader) {
  Ids ids;
  for (std::size_t id = kFirstPiece; id < pieces.size(); ++id)
    if (!ids.emplace(pieces[id].text, static_cast<std::int32_t>(id)).second)
      throw reader.error("\"" + pieces[id].text + "\" is a token twice");
  return ids;
}

// Every pair that makes a token, ordered by that token's score. Among pairs of one token the one with the
// longer left part comes first, as in Hugging Face's conversion. That matters only where three tokens in a
// row could become the token in two ways.
std::vector<Bpe::Merge> merges_of(const std::vector<Piece>& pieces, const Ids& ids) {
  struct Ranked {
    Bpe::Merge merge;
    float score;
    std::size_t left_bytes;
  };
  std::vector<Ranked> ranked;
  for (const auto& [text, id] : ids)
    for (std::size_t at = char_at(text, 0).bytes; at < text.size(); at += char_at(text, at).bytes) {
      const auto left = ids.find(text.substr(0, at)), right = ids.find(text.substr(at));
      if (left == ids.end() || right == ids.end()) continue;
      ranked.push_back({{left->second, right->second, id}, pieces[static_cast<std::size_t>(id)].score, at});
    }
  std::ranges::sort(ranked, [](const Ranked& a, const Ranked& b) {
    return std::tuple(-a.score, a.merge.result, b.left_bytes) <
           std::tuple(-b.score, b.merge.result, a.left_bytes);
  });
  std::vector<Bpe::Merge> merges;
  for (const Ranked& r : ranked) merges.push_back(r.merge);
  return merges;
}

}  // namespace

Tokenizer read_llama2c_tokenizer(const std::filesystem::path& path, std::int32_t vocab_size) {
  Reader reader(path, vocab_size);
  if (vocab_size < kFirstPiece)
    throw reader.error(fmt::format("the model has {} tokens, fewer than any tokenizer", vocab_size))
        .legal(fmt::format("{} or more", kFirstPiece));
  std::vector<Piece> pieces = reader.pieces();
  check_first(pieces, reader);

  std::vector<std::string> tokens;
  tokens.reserve(pieces.size());
  tokens.assign(kSpecial.begin(), kSpecial.end());
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(byte_name(static_cast<unsigned char>(byte)));
  const std::vector<Bpe::Merge> merges = merges_of(pieces, ids_of(pieces, reader));
  for (std::size_t id = kFirstPiece; id < pieces.size(); ++id)
    tokens.push_back(replaced(pieces[id].text, " ", kBlankMark));
  return {sentence_piece_json(tokens, merges), path.string()};
}

}  // namespace hyperrun
