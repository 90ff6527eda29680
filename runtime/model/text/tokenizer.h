// Tokenizers as tokenizer.json of Hugging Face's tokenizers library describes them, with the ids of that
// library. A text becomes tokens on this way:
//
//   added tokens     stretches of the text that are tokens by themselves (text/added_tokens.h)
//   normalizer       changes what lies between them (text/normalizer.h)
//   pre-tokenizer    cuts it into words (text/pre_tokenizer.h)
//   model            makes tokens of each word: BPE or Unigram (text/token_model.h)
//
// and tokens become a text again by the file's decoder (text/decoder.h). Each step is read from the file; one
// that is not supported is refused there.
//
// The file's post-processor says which special tokens go around a text. Of them encode() adds none:
// - the token before a text is begin_of_text(). Who trains puts it before the corpus and each further
// document,
//   who generates before a prompt;
// - those behind a text are left out, because a prompt is to be continued, and documents of a corpus end with
//   end_of_text().
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hyperrun {

// The token that ends a document of a tokenizer that was trained here. It stands for itself wherever it
// occurs in a text.
inline constexpr std::string_view kEndOfText = "<|endoftext|>";

class Tokenizer {
 public:
  static constexpr std::int32_t kMinVocab = 257;  // 256 bytes and kEndOfText

  // Trains byte-pair encoding in the manner of GPT-2 on `text`, to at most `vocab_size` tokens; fewer when no
  // pair occurs twice any more (text/bpe_train.h). kBadValue when vocab_size < kMinVocab.
  static Tokenizer train(std::string_view text, std::int32_t vocab_size);

  // Reads the content of a tokenizer.json. kBadCheckpoint at PLACE: FIELD where it is damaged or has a
  // setting that is not supported.
  Tokenizer(std::string document, const std::string& place);

  // The largest id, and 1. Ids may have holes.
  std::int32_t vocab_size() const;
  // The token that ends a document: <|endoftext|>, <|end_of_text|>, </s> or another such name among the added
  // tokens, else the one that the post-processor puts behind a text.
  std::int32_t end_of_text() const;
  std::int32_t begin_of_text() const;               // -1: there is none
  const std::string& token(std::int32_t id) const;  // in the file's spelling; empty for a hole
  // The file's content, byte by byte as it was read.
  const std::string& document() const;

  // The ids of a text, without those of the post-processor. Broken UTF-8 is read as U+FFFD
  // (text/lossy_utf8.h).
  std::vector<std::int32_t> encode(std::string_view text) const;
  // The text of `ids`, in UTF-8. An id without a token becomes U+FFFD, because a model's vocabulary may be
  // larger than ours; so do bytes that are no whole character. A begin_of_text at the front is left out.
  std::string decode(std::span<const std::int32_t> ids) const;

  // Whether the files say the same; the order of fields does not matter.
  bool operator==(const Tokenizer& o) const;

 private:
  struct Parts;

  std::shared_ptr<const Parts> parts_;
};

// Reads a tokenizer.json: kBadCheckpoint with the field; kMissingFile.
Tokenizer read_tokenizer(const std::filesystem::path& path);
// Writes what was read, byte by byte.
void write_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& path);

}  // namespace hyperrun
