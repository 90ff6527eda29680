// Cuts a text into words, between which tokens never merge. Words lie end to end and together are the
// text. Invalid bytes are of class "other".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hyperrun {

// The pattern that words follow; each is matched by hand, as its alternatives read from left to right.
enum class Words : std::uint8_t {
  // A contraction, or a run of one class of characters with one blank before it, or white space; white
  // space before a word leaves its last character to the word.
  //   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  kGpt2,
  // As GPT-2's, but contractions in either case, any character but a line break or number before letters,
  // numbers of at most three digits, line breaks at the end of what precedes them.
  kLlama3,
  // Blanks and what is not blank behind them: SentencePiece, whose tokens have blanks at the front alone.
  kBlanks,
  kOne,  // the text is one word
};

// What tokenizer.json says for Words::kLlama3.
inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Length in bytes of the word that begins at `at` (< text.size()). At least 1.
std::size_t word_length(Words words, std::string_view text, std::size_t at);

template <class F>
void for_each_word(Words words, std::string_view text, F&& f) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = word_length(words, text, at);
    f(text.substr(at, length));
    at += length;
  }
}

}  // namespace hyperrun
