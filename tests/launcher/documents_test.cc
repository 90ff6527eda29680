// Files beside the weights, and files of users: a run writes back what it was given, and reads what other
// programs and editors write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"

namespace hyperrun::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Document = nlohmann::ordered_json;

const std::string kTuning = R"(name: "tuning"
supernode { devices: 1 hbm: "16 MiB" }
model { layers: 2 hidden: 32 heads: 4 kv_heads: 2 head_dim: 8 ffn: 64 vocab: 262 sequence: 48 }
data { corpus: "corpus.txt" }
training { steps: 2 batch: 2 lr: 1e-4 }
run { directory: "out" resume: "given" }
)";

constexpr std::array kCarried{"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                              "generation_config.json"};

// A model "given" as Hugging Face's libraries save one, with weights that a run has made.
class Documents : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    workspace_ = std::make_unique<Workspace>();
    fs::copy(HYPERRUN_SOURCE_DIR "/tests/launcher/given", at("given"));
    const std::string maker = workspace_->job(
        edited(kTuning,
               {{" resume: \"given\"", ""},
                {"corpus: \"corpus.txt\"", "corpus: \"corpus.txt\" tokenizer: \"given/tokenizer.json\""}}),
        "maker.textproto");
    ASSERT_THAT(workspace_->run(hyperrun({maker, "--run-dir", "made"})), Succeeded());
    fs::copy(at("made/checkpoints/step-000002/model.safetensors"), at("given"));
    job_ = workspace_->job(kTuning);
  }
  static void TearDownTestSuite() { workspace_.reset(); }
  void TearDown() override { EXPECT_TRUE(workspace_->nothing_left()); }

  static fs::path at(std::string_view name) { return *workspace_ / name; }
  static Finished run(const std::vector<std::string>& arguments) {
    return workspace_->run(hyperrun(arguments));
  }
  static Document config(const fs::path& folder) { return Document::parse(content(folder / "config.json")); }

  static inline std::unique_ptr<Workspace> workspace_;
  static inline std::string job_;
};

TEST_F(Documents, AreWrittenBackAsTheyWereGiven) {
  std::string resume = "given";
  for (const std::string out : {"first", "second"}) {  // the second goes on from the first's checkpoint
    ASSERT_THAT(run({job_, "--resume", resume, "--run-dir", out}), Succeeded());
    const fs::path saved = at(out + "/checkpoints/step-000002");
    for (const char* file : kCarried) EXPECT_EQ(content(saved / file), content(at("given") / file)) << file;
    EXPECT_EQ(content(at(out + "/tokenizer.json")), content(at("given/tokenizer.json")));
    Document expected = config(at("given"));
    expected["torch_dtype"] = "float32";  // as the weights are stored
    EXPECT_EQ(config(saved).dump(), expected.dump());
    resume = out + "-weights";
    fs::copy(saved, at(resume));
    for (const char* state : {"hyperrun_state.json", "optimizer.safetensors"}) fs::remove(at(resume) / state);
  }
}

TEST_F(Documents, OfAnotherTokenizerAreNotCarriedOn) {
  Document tokenizer = Document::parse(content(at("given/tokenizer.json")));
  tokenizer["added_tokens"][1]["content"] = "<other>";
  fs::create_directory(at("other"));
  put_file(at("other/tokenizer.json"), tokenizer.dump());
  put_file(at("other/chat_template.jinja"), "{{ other }}");
  const std::string job =
      workspace_->job(edited(kTuning, {{"corpus.txt\"", "corpus.txt\" tokenizer: \"other/tokenizer.json\""}}),
                      "other.textproto");
  ASSERT_THAT(run({job, "--run-dir", "retold"}), Succeeded());
  const fs::path saved = at("retold/checkpoints/step-000002");
  EXPECT_EQ(content(saved / "tokenizer.json"), tokenizer.dump());
  EXPECT_EQ(content(saved / "chat_template.jinja"), "{{ other }}");
  for (const char* file : {"tokenizer_config.json", "special_tokens_map.json", "generation_config.json"})
    EXPECT_FALSE(fs::exists(saved / file)) << file;
  EXPECT_EQ(config(saved).at("max_position_embeddings"), 4096);
}

TEST_F(Documents, AFolderOfHuggingFacesTrainerGivesItsWeights) {
  fs::copy(at("given"), at("trainer"));
  put_file(at("trainer/trainer_state.json"), R"({"epoch": 1.25, "global_step": 500, "log_history": []})");
  for (const char* file : {"optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin"})
    put_file(at("trainer") / file, "PK\3\4");
  for (const Finished& f : {run({job_, "--resume", "trainer", "--run-dir", "tuned"}),
                            run({"check", job_, "--resume", "trainer"})}) {
    ASSERT_THAT(f, Succeeded());
    EXPECT_THAT(f.out, HasSubstr("starts at step 1 with the weights of"));
    EXPECT_THAT(f.out, HasSubstr("its training state, after 500 steps, is of Hugging Face's Trainer"));
  }
  EXPECT_FALSE(fs::exists(at("tuned/checkpoints/step-000002/trainer_state.json")));
}

TEST_F(Documents, PromptsOfWindowsAreThoseOfUnix) {
  put_file(at("unix.prompts"), "A ship\nB men\n");
  put_file(at("windows.prompts"),
           "\xEF\xBB\xBF"
           "A ship\r\n\r\nB men\r\n");
  const auto generated = [&](const char* prompts) {
    const Finished f = run({"generate", "given", "--prompts", prompts, "--tokens", "4", "--json"});
    EXPECT_THAT(f, Succeeded());
    return f.out;
  };
  EXPECT_EQ(generated("windows.prompts"), generated("unix.prompts"));
  EXPECT_THAT(generated("windows.prompts"), HasSubstr("\"A ship\""));
}

TEST_F(Documents, ACorpusOfJsonLinesTrainsOnItsTextsAndSaysSo) {
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += nlohmann::json{{"text", english(200)}, {"id", i}}.dump() + "\n";
  put_file(at("corpus.jsonl"), lines);
  const std::string job =
      workspace_->job(edited(kTuning, {{"corpus.txt", "corpus.jsonl"}}), "jsonl.textproto");
  const Finished f = run({job, "--run-dir", "from-jsonl"});
  ASSERT_THAT(f, Succeeded());
  EXPECT_THAT(f.out, HasSubstr("corpus.jsonl: 40 documents from JSON (field \"text\")"));
  put_file(at("table.parquet"), "PAR1 and so on");
  const std::string table =
      workspace_->job(edited(kTuning, {{"corpus.txt", "table.parquet"}}), "table.textproto");
  const Finished refused = run({table, "--run-dir", "never"});
  EXPECT_EQ(refused.status, 6);
  EXPECT_THAT(refused.err, HasSubstr("table.parquet: error[bad-corpus]: it is a file of Parquet, not text"));
}

}  // namespace
}  // namespace hyperrun::testing
