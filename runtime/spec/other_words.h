// The names that other frameworks have for the fields of a job, with the text to write here instead.
#pragma once

#include <google/protobuf/descriptor.h>

#include <span>
#include <string>
#include <string_view>

namespace hyperrun {

// A word of another framework. `text` is a field of the block, or a line in the block.
struct OtherWord {
  std::string_view word;
  std::string_view block;  // its path in a job: "training", "model.experts"
  std::string_view text;
  std::string_view note = "";  // what else differs, a sentence
};

std::span<const OtherWord> other_words();

// The message of the block at that path.
const google::protobuf::Descriptor* block_at(std::string_view path);

// A remedy for a word of the table that was written in `block`: `did you mean "batch" in "training"?`; empty
// for every other word, and for blocks that are no part of a job.
std::string suggest_for_other_word(std::string_view written, const google::protobuf::Descriptor* block);

// The value that a word stands for if its line sets a field to one value: "bfloat16" for "bf16".
std::string_view value_of_other_word(std::string_view written);

}  // namespace hyperrun
