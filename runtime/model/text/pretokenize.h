// Cuts a text into words, between which tokens never merge. Words lie end to end and together are the
// text. Invalid bytes are of class "other".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hyperrun {

// The pattern of words. Each is matched by hand, with its alternatives from left to right.
enum class Words : std::uint8_t {
  // A contraction, or a run of one class of characters with one blank before it, or white space; white
  // space before a word leaves its last character to the word.
  //   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  kGpt2,
  // Like GPT-2's, with these differences: contractions in either case; before letters any character but a
  // line break or a number; numbers of at most three digits; line breaks belong to the word before them.
  kLlama3,
  // Blanks with the characters up to the next blank: SentencePiece, whose tokens have blanks only at the
  // front.
  kBlanks,
  kOne,  // the text is one word
};

// The pattern in tokenizer.json that means Words::kLlama3.
inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// The length in bytes, at least 1, of the word that begins at `at` (< text.size()).
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
