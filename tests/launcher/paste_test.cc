// The lines of a remedy, pasted, make the job that the remedy is about.
#include "launcher/paste.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "launcher/fit_changes.h"
#include "proto/job.pb.h"
#include "runtime/compile/compile.h"
#include "runtime/spec/job_check.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/job_writer.h"
#include "tests/support/jobs.h"

namespace hyperrun::testing {
namespace {

// "in training: micro_batches: 2" as a block of a job.
std::string block_of(const std::string& pasted) {
  const std::size_t name = pasted.find(' ') + 1, colon = pasted.find(": ");
  return pasted.substr(name, colon - name) + " { " + pasted.substr(colon + 2) + " }";
}

// As somebody pastes it: a field takes the place of one of the same name; what the backward pass makes again
// stands behind what it made again before.
void paste_into(proto::Job& job, const std::string& pasted) {
  proto::Job more;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(block_of(pasted), &more)) << pasted;
  if (more.parallel().mesh_size() > 0) job.mutable_parallel()->clear_mesh();
  if (more.parallel().presets_size() > 0) job.mutable_parallel()->clear_presets();
  job.MergeFrom(more);
}

Job pasted(const Job& job, const std::string& lines) {
  proto::Job message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(to_textproto(job), &message));
  for (std::size_t begin = 0, end = 0; begin < lines.size(); begin = end + 2) {
    end = std::min(lines.find("; in ", begin), lines.size());
    paste_into(message, lines.substr(begin, end - begin));
  }
  return parse_job(message.SerializeAsString(), "job.pb").job;
}

Job written(Job job) {
  job.name = "job";
  job.data.corpus = "/corpus.txt";
  return parse_job(to_textproto(job), "job.pb").job;
}

// False where it is no legal job, which nobody is offered.
bool pastes(const Job& from, const Job& to) {
  if (!check_job(to, {}).empty()) return false;
  EXPECT_EQ(pasted(from, lines_to_paste(from, to)), to) << lines_to_paste(from, to);
  return true;
}

// All that is tried on a job that does not fit: each change alone, and upon those of the families before. How
// many there were.
int expect_to_paste(const Job& job, const std::vector<Family>& families) {
  int made = 0;
  Job before = job;
  for (const Family& family : families) {
    Job with_family = before;
    for (const Change& change : family.changes) {
      Job alone = job, after = before;
      change.apply(alone), change.apply(after);
      if (pastes(job, alone)) ++made;
      if (pastes(job, after)) with_family = after;
    }
    before = with_family;
  }
  return made;
}

TEST(Paste, MakesEachChangeOfATraining) {
  for (const char* words : {"tp:2", "dp:2 tp:2", "dp:2 pp:2"}) {
    const Job job = written(small_job(words));
    EXPECT_GE(expect_to_paste(job, changes_of_training(job, compile(job).plan)), 4) << words;
  }
}

TEST(Paste, MakesEachChangeOfAGeneration) {
  Job job = small_job("dp:2 tp:2");
  job.run.generate.tokens = 4;
  job.inference.slots = 8;
  EXPECT_GE(expect_to_paste(written(job), changes_of_generation(written(job))), 4);
}

TEST(Paste, MovesTensorsAndRaisesBudgets) {
  Job job = small_job("dp:2");
  job.supernode.pool = job.supernode.flash = kGiB;
  job = written(job);
  for (const bool generates : {false, true})
    EXPECT_GE(expect_to_paste(job, offloading(job, "hyperoffload", generates)), 2);
  Job more = job;
  more.supernode.hbm = Bytes(123456789), more.supernode.pool = kGiB * 3, more.supernode.flash = Bytes(5);
  EXPECT_EQ(pasted(job, lines_to_paste(job, more)), more);
}

TEST(Paste, SaysItsBlock) {
  const Job job = small_job("dp:2 tp:2");
  Job other = job;
  other.training.micro_batches = 4;
  other.training.recompute.push_back({"full", 0, job.model.layers - 1});
  other.parallel.presets.push_back("sp");
  EXPECT_EQ(lines_to_paste(job, other),
            "in parallel: presets: [\"dp\", \"tp\", \"sp\"]; in training: micro_batches: 4 "
            "recompute { policy: \"full\" }");
  EXPECT_EQ(lines_to_paste(job, job), "");
}

}  // namespace
}  // namespace hyperrun::testing
