#include "runtime/model/text/pre_tokenizer.h"

#include <fmt/core.h>

#include <array>
#include <utility>
#include <vector>

#include "runtime/model/text/char_names.h"
#include "runtime/model/text/metaspace.h"
#include "runtime/model/text/spelling.h"
#include "runtime/model/text/split.h"

namespace hyperrun {
namespace {

using Part = std::unique_ptr<PreTokenizer>;

// A contraction, or a run of one class of characters with one blank before it, or white space; white space
// before a word leaves its last character to the word.
constexpr const char* kGpt2Pattern =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

class ByteLevelPreTokenizer : public PreTokenizer {
 public:
  struct Options {
    bool adds_blank, cuts_words, raw;
  };

  ByteLevelPreTokenizer(Options options, const std::string& place)
      : options_(options), words_(Regex::oniguruma(kGpt2Pattern, place), SplitBehavior::kIsolated) {}

  void cut(TextPiece piece, PieceSink out) const override {
    std::string with_blank;
    if (options_.adds_blank && !piece.text.starts_with(' '))
      piece.text = with_blank = " " + std::string(piece.text);
    std::string spelled;
    const auto spell = [&](TextPiece word) {
      if (options_.raw) return out(word);
      spelled.clear();
      append_printable(word.text, spelled);
      out({spelled, word.at_start});
    };
    if (options_.cuts_words)
      words_.cut(piece, spell);
    else
      spell(piece);
  }

 private:
  Options options_;
  SplitPreTokenizer words_;
};

class MetaspacePreTokenizer : public PreTokenizer {
 public:
  MetaspacePreTokenizer(Metaspace metaspace, const std::string& place)
      : metaspace_(std::move(metaspace)),
        blank_(Regex::literal(" ", place)),
        words_(Regex::literal(metaspace_.mark, place), SplitBehavior::kMergedWithNext) {}

  void cut(TextPiece piece, PieceSink out) const override {
    using Prepend = Metaspace::Prepend;
    std::string text = blank_.replaced(piece.text, metaspace_.mark);
    const bool here =
        metaspace_.prepend == Prepend::kAlways || (metaspace_.prepend == Prepend::kFirst && piece.at_start);
    if (here && !text.starts_with(metaspace_.mark)) text.insert(0, metaspace_.mark);
    if (metaspace_.cuts_words)
      words_.cut({text, piece.at_start}, out);
    else
      out({text, piece.at_start});
  }

 private:
  Metaspace metaspace_;
  Regex blank_;
  SplitPreTokenizer words_;
};

class SequencePreTokenizer : public PreTokenizer {
 public:
  explicit SequencePreTokenizer(std::vector<Part> parts) : parts_(std::move(parts)) {}

  void cut(TextPiece piece, PieceSink out) const override { cut_from(0, piece, out); }

 private:
  void cut_from(std::size_t part, TextPiece piece, PieceSink out) const {
    if (part == parts_.size()) return out(piece);
    parts_[part]->cut(piece, [&](TextPiece inner) { cut_from(part + 1, inner, out); });
  }

  std::vector<Part> parts_;
};

Part split(const std::string& pattern, SplitBehavior behavior, const PipelineStep& step,
           bool invert = false) {
  return std::make_unique<SplitPreTokenizer>(Regex::oniguruma(pattern, step.place()), behavior, invert);
}

// Characters of punctuation: Unicode's, and the symbols of ASCII.
constexpr const char* kPunctuation = R"([\p{P}!-/:-@\[-`{-~])";

Part read_split(const PipelineStep& step) {
  step.allow({"pattern", "behavior", "invert"});
  step.fields().required("behavior");
  return std::make_unique<SplitPreTokenizer>(step.pattern("pattern"), read_behavior(step, ""),
                                             step.fields().boolean("invert", false));
}

Part read_byte_level(const PipelineStep& step) {
  step.allow({"add_prefix_space", "trim_offsets", "use_regex"});
  return std::make_unique<ByteLevelPreTokenizer>(
      ByteLevelPreTokenizer::Options{.adds_blank = step.fields().boolean("add_prefix_space", true),
                                     .cuts_words = step.fields().boolean("use_regex", true),
                                     .raw = false},
      step.place());
}

Part read_digits(const PipelineStep& step) {
  step.allow({"individual_digits"});
  const bool each = step.fields().boolean("individual_digits", false);
  return split(R"(\p{N})", each ? SplitBehavior::kIsolated : SplitBehavior::kContiguous, step);
}

Part read_metaspace_step(const PipelineStep& step) {
  return std::make_unique<MetaspacePreTokenizer>(read_metaspace(step), step.place());
}

Part read_punctuation(const PipelineStep& step) {
  step.allow({"behavior"});
  return split(kPunctuation, read_behavior(step, "Isolated"), step);
}

// Runs of the characters of words, and of those that are neither such nor white space.
Part read_whitespace(const PipelineStep& step) {
  step.allow({});
  const std::string pattern = fmt::format("[{0}]+|[^{0}{1}]+", rust_word_characters(), kWhiteSpace);
  return split(pattern, SplitBehavior::kRemoved, step, true);
}

Part read_whitespace_split(const PipelineStep& step) {
  step.allow({});
  return split(R"(\s)", SplitBehavior::kRemoved, step);
}

Part read_char_delimiter(const PipelineStep& step) {
  step.allow({"delimiter"});
  return std::make_unique<SplitPreTokenizer>(
      Regex::literal(step.character("delimiter", ""), step.place("delimiter")), SplitBehavior::kRemoved);
}

Part read_bert(const PipelineStep& step) {
  step.allow({});
  std::vector<Part> parts;
  parts.push_back(split(R"(\s)", SplitBehavior::kRemoved, step));
  parts.push_back(split(kPunctuation, SplitBehavior::kIsolated, step));
  return std::make_unique<SequencePreTokenizer>(std::move(parts));
}

Part read_sequence(const PipelineStep& step) {
  step.allow({"pretokenizers"});
  std::vector<Part> parts;
  for (const PipelineStep& inner : step.steps("pretokenizers")) parts.push_back(read_pre_tokenizer(inner));
  return std::make_unique<SequencePreTokenizer>(std::move(parts));
}

constexpr auto kReaders = std::to_array<StepReader<PreTokenizer>>({
    {"Split", read_split},
    {"ByteLevel", read_byte_level},
    {"Digits", read_digits},
    {"Metaspace", read_metaspace_step},
    {"Punctuation", read_punctuation},
    {"Whitespace", read_whitespace},
    {"WhitespaceSplit", read_whitespace_split},
    {"CharDelimiterSplit", read_char_delimiter},
    {"BertPreTokenizer", read_bert},
    {"Sequence", read_sequence},
});

}  // namespace

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const PipelineStep& step) {
  return read_step<PreTokenizer>(step, kReaders);
}

std::unique_ptr<PreTokenizer> gpt2_words(bool raw) {
  return std::make_unique<ByteLevelPreTokenizer>(
      ByteLevelPreTokenizer::Options{.adds_blank = false, .cuts_words = true, .raw = raw}, "GPT-2's words");
}

}  // namespace hyperrun
