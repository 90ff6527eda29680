// The texts of a generation as they grow. Each is printed once it is whole, in the order of the prompts. With
// a file they go there instead, in the order in which they come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "runtime/generate/generated_file.h"
#include "runtime/inference/batcher.h"
#include "runtime/model/text/tokenizer.h"

namespace hyperrun {

class Completions {
 public:
  // A last token that is one of `ends` is not printed. `json`: a line of JSON for each text. `file` is null
  // without one. The tokenizer and the file must outlive the object.
  Completions(const Tokenizer& tokenizer, std::vector<std::int32_t> ends, std::vector<std::string> prompts,
              bool json, GeneratedFile* file);

  void add(const SampledToken& grown);

  // Whether the prompt has its text, from this generation or from one before.
  bool has(std::size_t prompt) const;
  // The number of texts that this generation has ended.
  std::int64_t ended() const { return std::ssize(ended_); }

  // Forgets the tokens of texts that are not whole: the devices that grew them are gone.
  void begin_again();

 private:
  GeneratedText result(std::size_t prompt) const;
  void print(std::size_t prompt) const;

  const Tokenizer& tokenizer_;
  std::vector<std::int32_t> ends_;
  std::vector<std::string> prompts_;
  bool json_;
  GeneratedFile* file_;
  std::vector<std::vector<std::int32_t>> tokens_;  // by prompt
  std::set<std::size_t> ended_;                    // prompts
  std::size_t next_ = 0;                           // the next prompt to print
};

}  // namespace hyperrun
