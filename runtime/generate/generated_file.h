// The results of a long generation, hyperrun generate --out FILE: a line of JSON for each prompt. They are in
// FILE.partial as they come, behind a line with the settings that they were drawn with, so that a generation
// that was interrupted goes on. At its end FILE has them in the order of the prompts, and appears whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/report/generation.h"

namespace hyperrun {

// Whatever the texts depend on besides the prompts, by name, in an order.
using GenerationSettings = std::vector<std::pair<std::string, std::string>>;

class GeneratedFile {
 public:
  // With `resumes`, results in FILE.partial stay; a line that a kill has cut short does not. FILE alone stays
  // as well, if it has all prompts. Throws kBadValue if the settings or prompts were others, kUsage if
  // FILE.partial is there and `resumes` is false, kUnwritable.
  GeneratedFile(std::filesystem::path file, GenerationSettings settings, std::span<const std::string> prompts,
                bool resumes);
  ~GeneratedFile();
  GeneratedFile(const GeneratedFile&) = delete;
  GeneratedFile& operator=(const GeneratedFile&) = delete;

  bool has(std::int64_t prompt) const { return lines_.contains(prompt); }
  std::int64_t count() const { return std::ssize(lines_); }
  std::int64_t from_before() const { return from_before_; }
  bool is_whole() const { return std::cmp_equal(lines_.size(), prompts_.size()); }

  // Adds the result of a prompt that is not there yet. The first one makes FILE.partial: a generation that
  // fails before has left nothing.
  void add(const GeneratedText& text);
  void finish();  // all prompts are there: FILE appears

 private:
  void read(const std::filesystem::path& from, bool has_settings);
  void begin();
  void append(const std::string& line);

  std::filesystem::path file_, partial_;
  GenerationSettings settings_;
  std::vector<std::string> prompts_;
  std::map<std::int64_t, std::string> lines_;  // by prompt
  std::int64_t from_before_ = 0;
  int fd_ = -1;
};

}  // namespace hyperrun
