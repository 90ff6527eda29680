// Each family of models computes what Hugging Face's classes compute: from a config.json and weights that a
// NumPy implementation makes (reference.py), our scores, and those of texts that grow in a cache, are its
// scores in float64.
#include "runtime/ir/families.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "runtime/base/joined.h"
#include "runtime/model/checkpoint/hf_config.h"
#include "runtime/model/checkpoint/safetensors.h"
#include "tests/support/in_process_run.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun::testing {
namespace {

constexpr std::int32_t kLength = 24, kSequences = 2;  // of reference.py

// The allowed difference of float32 from float64: some thousand sums with errors of about 6e-8.
constexpr double kRoundOff = 1e-5;

struct Answer {
  int status = 0;
  std::string text;
};

Answer reference(const std::string& arguments) {
  std::FILE* const pipe = ::popen((std::string(PYTHON " -B " REFERENCE " ") + arguments).c_str(), "r");
  Answer answer;
  std::array<char, 4096> part{};
  while (const std::size_t n = std::fread(part.data(), 1, part.size(), pipe))
    answer.text.append(part.data(), n);
  answer.status = WEXITSTATUS(::pclose(pipe));
  return answer;
}

constexpr int kNoNumPy = 77;

std::vector<std::string> variants() {
  const Answer answer = reference("list");
  if (answer.status != 0) return {"none"};  // the test then says why it is skipped
  std::istringstream lines(answer.text);
  std::vector<std::string> names;
  for (std::string name; lines >> name;) names.push_back(name);
  return names;
}

template <class T>
std::vector<T> tensor(const SafetensorsReader& file, const std::string& name) {
  const TensorView* view = file.find(name);
  EXPECT_NE(view, nullptr) << name;
  if (view == nullptr) return {};
  std::vector<T> values(view->data.size() / sizeof(T));
  std::memcpy(values.data(), view->data.data(), view->data.size());
  return values;
}

class Families : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const Answer made = reference("make " + GetParam() + " " + made_);
    if (made.status == kNoNumPy || GetParam() == "none") GTEST_SKIP() << made.text;
    ASSERT_EQ(made.status, 0) << made.text;
  }

  // On one device, or tensor parallel on several.
  Job job(int devices = 1) const {
    Job job;
    job.supernode.devices = devices;
    job.supernode.hbm = Bytes(std::int64_t{64} << 20);
    job.parallel.mesh = {{"tp", devices}};
    job.parallel.presets = {"tp", "sp"};
    job.model = read_config(made_).model;
    if (family_of(job.model).learned_positions) job.model.positions = job.model.sequence;
    job.model.sequence = kLength;
    // The checkpoint of a DeepSeek-V3 has the biases that balanced its experts.
    if (job.model.name == "deepseek_v3") job.model.experts.bias_rate = 1e-30;
    job.training.batch = kSequences;
    job.training.steps = 1;
    return job;
  }

  TemporaryDirectory dir_;
  std::string made_ = (dir_ / "made").string();
};

TEST_P(Families, ScoresAreTheReferences) {
  const SafetensorsReader expected(made_ + "/expected.safetensors");
  RunOptions o;
  o.load_from = made_;
  o.only_scores = true;
  o.samples = [&](auto) {
    return Samples{.tokens = kLength,
                   .ids = tensor<std::int32_t>(expected, "ids"),
                   .targets = tensor<std::int32_t>(expected, "targets")};
  };
  const std::vector<float> wanted = tensor<float>(expected, "logp");
  for (const int devices : {1, 2}) {
    Job scoring = job(devices);
    scoring.training.policy = {.clip = 0.2};
    const std::vector<float> found = run_in_process(scoring, o).logp;
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], wanted[i], kRoundOff * (1 - wanted[i])) << "token " << i << " on " << devices;
  }
}

// Weights come back under the same names, shapes and bits, and config.json as the same model.
TEST_P(Families, CheckpointsComeBack) {
  Job training = job(2);
  training.training.lr = training.training.min_lr = 0;
  training.model.experts.bias_rate = std::min(training.model.experts.bias_rate, 1e-38);
  RunOptions o;
  o.load_from = made_;
  o.save_to = (dir_ / "saved").string();
  o.steps = 1;
  run_in_process(training, o);
  const SafetensorsReader before(made_ + "/model.safetensors"), after(o.save_to + "/model.safetensors");
  EXPECT_EQ(before.tensors().size(), after.tensors().size());
  for (const auto& [name, view] : before.tensors()) {
    const TensorView* back = after.find(name);
    ASSERT_NE(back, nullptr) << name;
    EXPECT_EQ(back->info.shape, view.info.shape) << name;
    EXPECT_TRUE(std::ranges::equal(back->data, view.data)) << name;
  }
  HfConfig config = read_config(made_);
  put_file(dir_ / "config.json", to_config_json(config));
  EXPECT_EQ(read_config(dir_ / "config.json"), config);
}

// Drawn tokens, with prompts in chunks and a cache in small pages.
TEST_P(Families, TextsGrowAsTheReferenceScoresThem) {
  constexpr std::int32_t kGrown = 10;
  Job writing = job();
  writing.run.generate.tokens = kGrown;
  writing.run.generate.temperature = 1;  // a greedy choice has no log probability
  writing.inference = {.slots = 1, .context = kLength, .chunk = 6, .page = 4};
  RunOptions o;
  o.load_from = made_;
  o.only_generates = true;
  o.prompts = {{5, 66, 250, 7, 7, 30, 101, 2, 9, 88, 140}};
  const RunResult run = run_in_process(writing, o);
  std::vector<int> text(o.prompts[0].begin(), o.prompts[0].end());
  const std::vector<int>& grown = run.grown.at(0);
  ASSERT_GT(grown.size(), 0U);
  text.insert(text.end(), grown.begin(), grown.end());
  const Answer scores = reference(fmt::format("score {} {} {}", made_, kLength, joined(text, " ")));
  ASSERT_EQ(scores.status, 0) << scores.text;
  std::istringstream lines(scores.text);
  std::vector<double> wanted;
  for (double value = 0; lines >> value;) wanted.push_back(value);
  const std::vector<float>& logp = run.grown_logp.at(0);
  ASSERT_EQ(logp.size(), grown.size());
  for (std::size_t i = 0; i < logp.size(); ++i) {
    const double of_reference = wanted[o.prompts[0].size() - 1 + i];
    EXPECT_NEAR(logp[i], of_reference, kRoundOff * (1 - of_reference)) << "token " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Families, ::testing::ValuesIn(variants()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hyperrun::testing
