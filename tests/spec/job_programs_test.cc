// Jobs of several programs: the job of each program alone, and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/ir/programs.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/job_writer.h"
#include "tests/support/errors.h"

namespace hyperrun {
namespace {

const std::string kJob = R"(name: "rl"
supernode { devices: 4 hbm: "1 GiB" pool: "8 GiB" }
model { layers: 2 hidden: 64 heads: 4 vocab: 300 sequence: 32 }
data { tasks: "/t.jsonl" }
training { steps: 3 batch: 16 micro_batches: 2 lr: 1e-3 recompute { } policy { clip: 0.2 temperature: 0.7 } }
reinforcement { samples: 4 tokens: 8 }
programs { name: "actor" does: "generate" devices: 2 weights: "learner"
  parallel { mesh { name: "tp" size: 2 } presets: "tp" } inference { slots: 6 } }
programs { name: "judge" does: "reward" inputs: "actor" }
programs { name: "before" does: "score" devices: 1 first_device: 3 inputs: "actor" }
programs { name: "learner" does: "train" first_device: 2 devices: 2 inputs: ["actor", "judge", "before"]
  parallel { mesh { name: "pp" size: 2 } pipeline { axis: "pp" } } }
)";

std::string with(const std::string& from, const std::string& to) {
  std::string text = kJob;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

Job read(const std::string& text) { return parse_job(text, "j.textproto", JobUse::kOfPrograms).job; }

TEST(JobPrograms, AreJobsOfTheirOwn) {
  const Job job = read(kJob);
  ASSERT_EQ(job.programs.size(), 4U);
  const Job actor = job_of(job, *find_program(job, kGenerates)),
            learner = job_of(job, *find_program(job, kTrains)),
            before = job_of(job, *find_program(job, kScores));
  EXPECT_EQ(actor.supernode.devices, 2);
  EXPECT_EQ(actor.supernode.pool, kGiB * 4);
  EXPECT_EQ(actor.supernode.hbm, kGiB);
  EXPECT_EQ(actor.parallel.presets, std::vector<std::string>{"tp"});
  EXPECT_EQ(actor.inference.slots, 6);
  EXPECT_EQ(actor.run.generate.tokens, 8);
  EXPECT_EQ(actor.run.generate.temperature, 0.7);
  EXPECT_TRUE(actor.training.recompute.empty());
  EXPECT_EQ(learner.training, job.training);
  EXPECT_EQ(learner.parallel.pipeline.stages.size(), 2U);  // filled in like in a job of one program
  EXPECT_EQ(before.training.batch, 16);
  EXPECT_EQ(ranks_of(*find_program(job, kTrains)), (std::vector<int>{2, 3}));
  EXPECT_EQ(find_program(job, "nothing"), nullptr);
}

TEST(JobPrograms, AreWrittenAsTheyWereRead) {
  const Job job = read(kJob);
  for (const std::string& written : {to_textproto(job), to_binary(job)}) {
    Job again = read(written);
    EXPECT_EQ(again, job);
  }
}

TEST(JobPrograms, AreRefusedByWhoTakesOne) {
  EXPECT_ERROR(parse_job(kJob, "j.textproto"), Code::kBadValue, "j.textproto:7:1", "several programs");
}

struct Wrong {
  const char *from, *to;
  Code code;
  const char *place, *cause;
};

TEST(JobPrograms, ThatDoNotGoTogetherAreRefusedWithTheirPlace) {
  for (const Wrong& w : std::initializer_list<Wrong>{
           {"name: \"judge\"", "name: \"actor\"", Code::kBadValue, ":9:", "two programs are called"},
           {"name: \"judge\"", "name: \"4\"", Code::kBadValue, ":9:", "cannot be called"},
           {"does: \"score\"", "does: \"reward\"", Code::kBadValue, ":7:", "2 programs do \"reward\""},
           {"does: \"score\"", "does: \"draw\"", Code::kBadValue, ":10:", "unknown"},
           {"does: \"score\"", "does: \"encode\"", Code::kBadValue, ":10:", "nothing is encoded"},
           {"does: \"generate\" devices: 2", "does: \"generate\" devices: 5", Code::kBadValue,
            ":7:", "0 to 4 of 4"},
           {"first_device: 2 devices: 2", "first_device: 3 devices: 2", Code::kBadValue,
            ":11:", "3 to 4 of 4"},
           {"does: \"generate\" devices: 2", "does: \"generate\" devices: 3", Code::kBadLayout,
            ":8:", "the mesh has 2"},
           {"does: \"reward\"", "does: \"reward\" devices: 1", Code::kBadValue, ":9:", "needs no devices"},
           {"weights: \"learner\"", "", Code::kBadValue, ":7:", "has no weights"},
           {"weights: \"learner\"", "weights: \"before\"", Code::kBadValue, ":7:", "weights of its own"},
           {"[\"actor\", \"judge\", \"before\"]", "[\"actor\", \"judge\"]", Code::kBadValue, ":11:", "takes"},
           {"inputs: \"actor\" }", "}", Code::kBadValue, ":9:", "takes none"},
           {"samples: 4", "samples: 3", Code::kBadValue, ":6:", "does not divide"},
           {"samples: 4", "samples: 1", Code::kBadValue, ":6:", "cannot be 1"},
           {"tokens: 8", "tokens: 32", Code::kBadValue, ":6:", "no room for a prompt"},
           {"tokens: 8", "tokens: 8 held_back: 1", Code::kBadValue, ":6:", "held back"},
           {"policy { clip: 0.2 temperature: 0.7 }", "", Code::kMissingField, ":5:", "no policy"},
           {"reinforcement { samples: 4 tokens: 8 }", "", Code::kMissingField, ":7:", "nothing says what"},
           {"tasks: \"/t.jsonl\"", "corpus: \"/c\"", Code::kMissingField, ":4:", "no tasks"},
           {"name: \"rl\"", "name: \"rl\" parallel { presets: \"dp\" }", Code::kBadValue,
            ":1:", "in each of them"},
           {"name: \"rl\"", "name: \"rl\" run { generate { tokens: 2 } }", Code::kBadValue,
            ":1:", "generate"},
           {"name: \"rl\"", "name: \"rl\" run { copy_every: 2 }", Code::kBadValue, ":1:", "copy_every"},
       })
    EXPECT_ERROR(read(with(w.from, w.to)), w.code, w.place, w.cause);
}

TEST(JobPrograms, WithADivergenceNeedWhatItIsFrom) {
  std::string text = with("temperature: 0.7", "temperature: 0.7 kl: 0.1");
  EXPECT_GT(read(text).training.policy.kl, 0);
  const std::size_t score = text.find("programs { name: \"before\"");
  text.erase(score, text.find('\n', score) + 1 - score);
  text.erase(text.find(", \"before\""), std::string(", \"before\"").size());
  EXPECT_ERROR(read(text), Code::kBadValue, ":5:", "what the divergence is from");
}

TEST(JobPrograms, AreWhatTasksAndReinforcementAreFor) {
  const std::string one =
      "supernode { devices: 1 hbm: \"1 GiB\" }\nmodel { layers: 2 hidden: 64 heads: 4 vocab: 300 sequence: "
      "32 }\n"
      "training { steps: 3 batch: 16 lr: 1e-3 }\n";
  EXPECT_ERROR(read(one + "data { tasks: \"/t\" }"), Code::kBadValue, ":4:", "learn by reinforcement");
  EXPECT_ERROR(read(one + "data { corpus: \"/c\" }\nreinforcement { samples: 2 tokens: 1 }"), Code::kBadValue,
               ":5:", "no program");
}

}  // namespace
}  // namespace hyperrun
