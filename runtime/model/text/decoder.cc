#include "runtime/model/text/decoder.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "runtime/base/joined.h"
#include "runtime/base/utf8.h"
#include "runtime/model/text/lossy_utf8.h"
#include "runtime/model/text/metaspace.h"
#include "runtime/model/text/spelling.h"

namespace hyperrun {
namespace {

using Part = std::unique_ptr<TokenDecoder>;
using Tokens = std::vector<std::string>;

// A decoder that is a function of the tokens.
template <class Function>
class Decodes : public TokenDecoder {
 public:
  explicit Decodes(Function function) : function_(std::move(function)) {}
  void apply(Tokens& tokens) const override { function_(tokens); }

 private:
  Function function_;
};

template <class Function>
Part decoding(Function function) {
  return std::make_unique<Decodes<Function>>(std::move(function));
}

// A token with a character that stands for no byte is text as it is; so are added tokens.
Part read_byte_level(const PipelineStep& step) {
  step.allow({"add_prefix_space", "trim_offsets", "use_regex"});
  return decoding([](Tokens& tokens) {
    std::string bytes;
    for (const std::string& token : tokens) {
      const std::size_t before = bytes.size();
      if (to_bytes(token, bytes)) continue;
      bytes.resize(before);
      bytes += token;
    }
    tokens = {lossy_utf8(bytes)};
  });
}

// Appends what a run of bytes spells; U+FFFD for each of its bytes when that is no UTF-8.
void append_bytes(std::string& bytes, Tokens& tokens) {
  if (is_utf8(bytes)) {
    if (!bytes.empty()) tokens.push_back(bytes);
  } else {
    tokens.insert(tokens.end(), bytes.size(), "\uFFFD");
  }
  bytes.clear();
}

Part read_byte_fallback(const PipelineStep& step) {
  step.allow({});
  return decoding([](Tokens& tokens) {
    Tokens decoded;
    std::string bytes;
    for (std::string& token : tokens) {
      if (const std::optional<unsigned char> byte = byte_of_name(token)) {
        bytes += static_cast<char>(*byte);
        continue;
      }
      append_bytes(bytes, decoded);
      decoded.push_back(std::move(token));
    }
    append_bytes(bytes, decoded);
    tokens = std::move(decoded);
  });
}

Part read_fuse(const PipelineStep& step) {
  step.allow({});
  return decoding([](Tokens& tokens) { tokens = {joined(tokens, "")}; });
}

Part read_metaspace_decoder(const PipelineStep& step) {
  return decoding([metaspace = read_metaspace(step)](Tokens& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const bool first = i == 0 && metaspace.prepend != Metaspace::Prepend::kNever;
      tokens[i] = replaced(tokens[i], metaspace.mark, first ? "" : " ");
    }
  });
}

Part read_replace(const PipelineStep& step) {
  step.allow({"pattern", "content"});
  return decoding([pattern = step.pattern("pattern"), content = step.text("content")](Tokens& tokens) {
    for (std::string& token : tokens) token = pattern.replaced(token, content);
  });
}

// Of each token up to `start` characters `content` at the front and up to `stop` at the end are left out.
std::string stripped(std::string_view token, std::string_view content, std::int64_t start,
                     std::int64_t stop) {
  for (; start > 0 && token.starts_with(content); --start) token.remove_prefix(content.size());
  for (; stop > 0 && token.ends_with(content); --stop) token.remove_suffix(content.size());
  return std::string(token);
}

Part read_strip(const PipelineStep& step) {
  step.allow({"content", "start", "stop"});
  const std::int64_t start = step.fields().integer("start"), stop = step.fields().integer("stop");
  return decoding([=, content = step.character("content", "")](Tokens& tokens) {
    for (std::string& token : tokens) token = stripped(token, content, start, stop);
  });
}

Part read_bpe(const PipelineStep& step) {
  step.allow({"suffix"});
  return decoding([suffix = step.fields().string("suffix", "</w>")](Tokens& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = replaced(tokens[i], suffix, i + 1 < tokens.size() ? " " : "");
  });
}

// Takes back the blanks that stand before punctuation and contractions when words are joined by blanks.
std::string without_blanks(std::string text) {
  constexpr auto kForms = std::to_array<std::pair<std::string_view, std::string_view>>({
      {" .", "."},
      {" ?", "?"},
      {" !", "!"},
      {" ,", ","},
      {" ' ", "'"},
      {" n't", "n't"},
      {" 'm", "'m"},
      {" do not", " don't"},
      {" 's", "'s"},
      {" 've", "'ve"},
      {" 're", "'re"},
  });
  for (const auto& [from, to] : kForms) text = replaced(text, from, to);
  return text;
}

Part read_word_piece(const PipelineStep& step) {
  step.allow({"prefix", "cleanup"});
  return decoding([prefix = step.fields().string("prefix", "##"),
                   cleans = step.fields().boolean("cleanup", true)](Tokens& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0 && tokens[i].starts_with(prefix))
        tokens[i].erase(0, prefix.size());
      else if (i > 0)
        tokens[i] = fmt::format(" {}", tokens[i]);
      if (cleans) tokens[i] = without_blanks(std::move(tokens[i]));
    }
  });
}

Part read_sequence(const PipelineStep& step) {
  step.allow({"decoders"});
  std::vector<std::shared_ptr<TokenDecoder>> parts;
  for (const PipelineStep& inner : step.steps("decoders")) parts.push_back(read_decoder(inner));
  return decoding([parts = std::move(parts)](Tokens& tokens) {
    for (const auto& part : parts) part->apply(tokens);
  });
}

constexpr auto kReaders = std::to_array<StepReader<TokenDecoder>>({
    {"ByteLevel", read_byte_level},
    {"ByteFallback", read_byte_fallback},
    {"Fuse", read_fuse},
    {"Metaspace", read_metaspace_decoder},
    {"Replace", read_replace},
    {"Strip", read_strip},
    {"BPEDecoder", read_bpe},
    {"WordPiece", read_word_piece},
    {"Sequence", read_sequence},
});

}  // namespace

std::unique_ptr<TokenDecoder> read_decoder(const PipelineStep& step) {
  return read_step<TokenDecoder>(step, kReaders);
}

}  // namespace hyperrun
