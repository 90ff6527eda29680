// Cuts a text into words, between which byte pairs never merge, as GPT-2 does. Its pattern,
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// by hand: a contraction, or a run of one class of characters with one blank before it, or white
// space; white space before a word leaves its last character to the word. Words lie end to end and
// together are the text. Invalid bytes are of class "other".
#pragma once

#include <cstddef>
#include <string_view>

namespace hyperrun {

// Length in bytes of the word that begins at `at` (< text.size()). At least 1.
std::size_t word_length(std::string_view text, std::size_t at);

template <class F>
void for_each_word(std::string_view text, F&& f) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = word_length(text, at);
    f(text.substr(at, length));
    at += length;
  }
}

}  // namespace hyperrun
