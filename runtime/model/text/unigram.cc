#include "runtime/model/text/unigram.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "runtime/base/utf8.h"
#include "runtime/model/text/spelling.h"

namespace hyperrun {
namespace {

constexpr double kUnkPenalty = 10;  // what an unknown character costs beyond the token with the lowest score

std::uint64_t edge(std::uint32_t node, char byte) {
  return std::uint64_t{node} * 256 + static_cast<unsigned char>(byte);
}

}  // namespace

Unigram::Unigram(std::shared_ptr<const Vocabulary> vocabulary, std::vector<double> scores, Options options)
    : vocabulary_(std::move(vocabulary)),
      scores_(std::move(scores)),
      options_(std::move(options)),
      token_at_(1, -1) {
  unk_score_ = (scores_.empty() ? 0 : std::ranges::min(scores_)) - kUnkPenalty;
  for (std::int32_t id = 0; id < vocabulary_->size(); ++id)
    if (vocabulary_->has(id)) add_to_trie(vocabulary_->token(id), id);
}

void Unigram::add_to_trie(std::string_view token, std::int32_t id) {
  std::uint32_t node = 0;
  for (const char c : token) {
    std::uint32_t& child = children_[edge(node, c)];
    if (child == 0) {
      child = static_cast<std::uint32_t>(token_at_.size());
      token_at_.push_back(-1);
    }
    node = child;
  }
  token_at_[node] = id;
}

// Viterbi's algorithm. Of two ways with the same score the one that was found first stays.
std::vector<Unigram::Node> Unigram::best_paths(std::string_view word) const {
  std::vector<Node> nodes(word.size() + 1);
  const auto offer = [&](std::size_t end, std::size_t begin, double score, std::int32_t id) {
    Node& node = nodes[end];
    if (node.begin < 0 || score > node.score) node = {score, static_cast<std::int64_t>(begin), id};
  };
  for (std::size_t begin = 0; begin < word.size();) {
    const double before = nodes[begin].score;
    const std::size_t character = char_at(word, begin).bytes;
    bool is_known = false;
    std::uint32_t node = 0;
    for (std::size_t at = begin; at < word.size(); ++at) {
      const std::uint32_t* child = children_.find(edge(node, word[at]));
      if (child == nullptr) break;
      node = *child;
      const std::int32_t id = token_at_[node];
      if (id < 0) continue;
      offer(at + 1, begin, scores_[static_cast<std::size_t>(id)] + before, id);
      is_known = is_known || at + 1 == begin + character;
    }
    if (!is_known) offer(begin + character, begin, unk_score_ + before, options_.unk);
    begin += character;
  }
  return nodes;
}

void Unigram::add_piece(std::string_view piece, std::vector<std::int32_t>& out) const {
  if (const std::int32_t id = vocabulary_->id_of(piece); id >= 0) return out.push_back(id);
  const std::size_t before = out.size();
  bool has_all = options_.byte_fallback;
  for (std::size_t i = 0; has_all && i < piece.size(); ++i) {
    out.push_back(vocabulary_->id_of(byte_name(static_cast<unsigned char>(piece[i]))));
    has_all = out.back() >= 0;
  }
  if (has_all) return;
  out.resize(before);
  if (options_.unk < 0)
    throw Error(Code::kBadCheckpoint,
                fmt::format("\"{}\" is in no token, and there is no token for what is unknown", piece))
        .at(options_.place)
        .legal("the id of a token");
  out.push_back(options_.unk);
}

// Unknown characters in a row are one piece.
void Unigram::encode(std::string_view word, std::vector<std::int32_t>& out) const {
  const std::vector<Node> nodes = best_paths(word);
  std::vector<TextRange> pieces;
  bool after_unk = false;
  for (std::size_t end = word.size(); end > 0;) {
    const Node& node = nodes[end];
    const auto begin = static_cast<std::size_t>(node.begin);
    const bool is_unk = node.id == options_.unk;
    if (is_unk && after_unk)
      pieces.back().begin = begin;
    else
      pieces.push_back({begin, end});
    after_unk = is_unk;
    end = begin;
  }
  std::ranges::reverse(pieces);
  for (const TextRange piece : pieces) add_piece(word.substr(piece.begin, piece.end - piece.begin), out);
}

namespace {

using nlohmann::json;

// A score as Hugging Face's library reads it: the digits as an integer, rounded to a double, and divided by a
// power of ten, rounded again. The last bit can differ from the nearest double; it decides between cuts of
// equal sums. The digits are the fewest that name the number, as libraries write them.
double twice_rounded(double score) {
  std::array<char, 32> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), std::fabs(score), std::chars_format::scientific);
  const std::string_view all(text.data(), end.ptr);
  const std::size_t e = all.find('e');
  if (e == std::string_view::npos) return score;
  int exponent = 0;
  std::from_chars(all.data() + e + (all[e + 1] == '+' ? 2 : 1), end.ptr, exponent);
  std::uint64_t digits = 0;
  for (const char c : all.substr(0, e)) {
    if (c == '.') continue;
    digits = digits * 10 + static_cast<std::uint64_t>(c - '0');
    --exponent;
  }
  ++exponent;  // the digit before the point
  // Powers of ten up to 22 are doubles.
  if (std::abs(exponent) > 22) return score;
  const double power = std::pow(10.0, std::abs(exponent)), value = static_cast<double>(digits);
  return std::copysign(exponent < 0 ? value / power : value * power, score);
}

// Reads [[token, score], ...]; a token's id is its place.
void read_pieces(const PipelineStep& step, Vocabulary& vocabulary, std::vector<double>& scores) {
  const json& list = step.fields().required("vocab");
  if (!list.is_array()) throw step.fields().error("vocab", "must be a list of tokens with scores");
  for (const json& entry : list) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number())
      throw step.fields().error("vocab", entry.dump() + " is no token with its score");
    if (!vocabulary.add(entry[0].get<std::string>(), static_cast<std::int64_t>(scores.size())))
      throw step.fields().error("vocab", entry[0].dump() + " is a token twice");
    scores.push_back(twice_rounded(entry[1].get<double>()));
  }
}

}  // namespace

ReadModel read_unigram(const PipelineStep& step) {
  step.allow({"unk_id", "vocab", "byte_fallback"});
  const auto vocabulary = std::make_shared<Vocabulary>();
  std::vector<double> scores;
  read_pieces(step, *vocabulary, scores);
  const std::int64_t unk = step.fields().integer("unk_id", -1);
  if (unk >= vocabulary->size() || unk < -1)
    throw step.fields()
        .error("unk_id", fmt::format("{} is the id of no token", unk))
        .legal(fmt::format("0 to {}", vocabulary->size() - 1));
  Unigram::Options options{.unk = static_cast<std::int32_t>(unk),
                           .byte_fallback = step.fields().boolean("byte_fallback", false),
                           .place = step.place("unk_id")};
  return {vocabulary, std::make_unique<Unigram>(vocabulary, std::move(scores), std::move(options))};
}

}  // namespace hyperrun
