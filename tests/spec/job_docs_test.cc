// The reference pages for users are complete: they have every field of the schema and every code.
#include <gmock/gmock.h>

#include "proto/job.pb.h"
#include "runtime/base/error.h"
#include "tests/spec/job_texts.h"

namespace hyperrun {
namespace {

using ::testing::HasSubstr;

// The part of the document under the heading, up to the next heading of the same rank.
std::string section(const std::string& document, const std::string& heading) {
  std::size_t from = document.find("\n" + heading + "\n");
  EXPECT_NE(from, std::string::npos) << heading;
  if (from == std::string::npos) return {};
  std::size_t to = document.find("\n## ", from + heading.size());
  return document.substr(from, to == std::string::npos ? to : to - from);
}

void expect_every_field(const google::protobuf::FileDescriptor* file, const std::string& page) {
  std::string document = file_content(HYPERRUN_SOURCE_DIR "/docs/" + page);
  for (int m = 0; m < file->message_type_count(); ++m) {
    const auto* block = file->message_type(m);
    std::string text = section(document, "## " + block->name());
    for (int f = 0; f < block->field_count(); ++f)
      EXPECT_THAT(text, HasSubstr("\n| `" + block->field(f)->name() + "` |")) << block->name();
  }
}

TEST(JobDocs, NameEveryField) {
  expect_every_field(proto::Job::descriptor()->file(), "job.md");
  expect_every_field(proto::Run::descriptor()->file(), "run.md");
}

TEST(JobDocs, NameEveryErrorCodeWithItsExitStatus) {
  std::string document = file_content(HYPERRUN_SOURCE_DIR "/docs/errors.md");
  for (int c = 0; c <= static_cast<int>(Code::kInternal); ++c) {
    auto code = static_cast<Code>(c);
    std::string status = std::to_string(static_cast<int>(exit_code(code)));
    std::string text = section(document, "## " + std::string(name(code)));
    EXPECT_THAT(text, HasSubstr("Exit status " + status + ".")) << name(code);
    EXPECT_THAT(text, HasSubstr("error[" + std::string(name(code)) + "]")) << "an example";
  }
}

// The example in docs/job.md is the quickstart itself.
TEST(JobDocs, ShowTheQuickstart) {
  std::string document = file_content(HYPERRUN_SOURCE_DIR "/docs/job.md");
  std::string example = file_content(HYPERRUN_SOURCE_DIR "/examples/quickstart.textproto");
  EXPECT_THAT(document, HasSubstr(example.substr(example.find("name:"))));
}

}  // namespace
}  // namespace hyperrun
