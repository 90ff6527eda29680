// The output of `sim --json` for every example that needs no data of its own, and of `plan --json` for six
// jobs, against golden/*.json. Devices are compared by their digest, since there are up to 512.
#include "tests/support/golden.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/media/file.h"
#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"

namespace hyperrun::testing {
namespace {

using Json = nlohmann::ordered_json;

const std::string kFolder = "tests/launcher/golden/";
const std::string kSource = HYPERRUN_SOURCE_DIR "/";

Json answer(const std::vector<std::string>& words) {
  const Workspace workspace;
  const Finished f = workspace.run(hyperrun(words), Seconds(300));
  EXPECT_EQ(f.status, 0) << f;
  return f.status == 0 ? Json::parse(f.out) : Json();
}

class GoldenSim : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenSim, IsWhatItWas) {
  const std::string name = GetParam();
  std::vector<std::string> words{"sim", kSource + "examples/" + name + ".textproto", "--json", "--no-range"};
  if (name.find("generation") != std::string::npos) words.emplace_back("--generate");
  Json json = answer(words);
  for (const char* list : {"devices", "steps"})
    if (json.contains(list)) json[list] = xxh3(json[list].dump());
  expect_golden(kFolder + name + ".sim.json", json.dump(1) + "\n");
}

INSTANTIATE_TEST_SUITE_P(Examples, GoldenSim,
                         ::testing::Values("bench_dim256", "bench_dim512", "deepseek", "deepseek_v3_512",
                                           "experts", "gpt2", "llama405b_1d", "llama405b_2d",
                                           "llama8b_generation", "llama8b_generation_to_scale",
                                           "llama8b_to_scale", "offload", "one_device", "pipeline",
                                           "quickstart", "qwen3_30b_a3b_swap", "sums", "two_hosts"),
                         [](const auto& info) { return std::string(info.param); });

class GoldenPlan : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenPlan, IsWhatItWas) {
  const std::string name = GetParam();
  const Json json =
      answer({"plan", kSource + kFolder + name + ".textproto", "--json", "--leaders", "2", "--ranges", "2"});
  expect_golden(kFolder + name + ".plan.json", json.dump(1) + "\n");
}

INSTANTIATE_TEST_SUITE_P(Jobs, GoldenPlan,
                         ::testing::Values("dense", "experts", "latent", "long_sequence", "small_pool",
                                           "h100"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hyperrun::testing
