// Any bytes give a job or an Error with a place, never anything else, and nothing on standard error.
#include <random>

#include "runtime/spec/job_reader.h"
#include "runtime/spec/job_writer.h"
#include "tests/spec/job_texts.h"

namespace hyperrun {
namespace {

constexpr int kRounds = 3000;

// Changes a few bytes: replaces, removes or doubles some, or moves a piece of the text.
std::string mutate(std::string text, std::mt19937& random) {
  auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  for (std::size_t changes = below(4) + 1; changes > 0 && !text.empty(); --changes) {
    std::size_t at = below(text.size());
    std::size_t length = std::min(below(12) + 1, text.size() - at);
    switch (below(5)) {
      case 0: text[at] = static_cast<char>(below(256)); break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(below(text.size()), text.substr(at, length)); break;
      case 3: text[at] = "{}[]:\"'\\#<>,;-.0\n"[below(17)]; break;
      default: text.resize(at); break;
    }
  }
  return text;
}

void expect_job_or_error(const std::string& content) {
  try {
    Job job = parse_job(content, "j").job;
    EXPECT_EQ(parse_job(to_textproto(job), "j").job, job) << content;
  } catch (const Error& e) {
    EXPECT_EQ(exit_code(e.code()), ExitCode::kBadJob) << e.what() << "\n" << content;
    EXPECT_EQ(e.place().front(), 'j') << e.what();
    EXPECT_FALSE(e.cause().empty());
  }
}

void run(const std::string& seed_text) {
  std::mt19937 random(7);
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < kRounds; ++i) expect_job_or_error(mutate(seed_text, random));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(JobFuzz, Text) { run(std::string(kJobText)); }

TEST(JobFuzz, LayoutNotation) {
  run(with("dims { dim: \"heads\" axes: \"tp\" }",
           "layout: 'Layout((2, 2), (\"dp\", \"tp\"))(\"tp\", \"None\", (\"dp\",))'"));
}

TEST(JobFuzz, Binary) { run(to_binary(parse_job(kJobText, "j").job)); }

TEST(JobFuzz, LongWords) {
  std::string word(500000, 'x');
  for (const std::string& text :
       {word, "name: " + word, "name: \"" + word + "\"", word + ": 1", "run { " + word, "name: '" + word,
        std::string(500000, '"'), std::string(500000, '['), "run { streams: " + word + " }",
        "model { tied_head: " + word + " }"})
    expect_job_or_error(text);
}

}  // namespace
}  // namespace hyperrun
