// Refusals: exit status, place, code, remedy; soon, and with nothing written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "runtime/base/error.h"
#include "tests/launcher/results.h"
#include "tests/launcher/workspace.h"

namespace hyperrun::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Fragments = std::vector<std::string>;

constexpr Seconds kSoon(5);  // on an idle machine it takes a tenth of that

struct Refusal {
  std::string name;
  std::vector<Edit> edits;  // of kJob
  int status;
  Fragments said;
  std::function<void(const Workspace&)> prepare = {};
};

// Expects the message on standard error, and nothing elsewhere.
void expect_refused(const Workspace& workspace, const Finished& f, int status, const Fragments& said) {
  EXPECT_EQ(f.status, status) << f;
  EXPECT_FALSE(f.timed_out);
  EXPECT_LT(f.time.count(), kSoon.count() * kSlowdown);
  for (const std::string& fragment : said) EXPECT_THAT(f.err, HasSubstr(fragment)) << f;
  EXPECT_THAT(f.err, HasSubstr("fix: ")) << f;
  EXPECT_FALSE(fs::exists(workspace / "out")) << f;
  EXPECT_TRUE(workspace.nothing_left());
}

void PrintTo(const Refusal& refusal, std::ostream* stream) { *stream << refusal.name; }

class RefusedJob : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedJob, WithPlaceAndRemedy) {
  const Refusal& refusal = GetParam();
  const Workspace workspace;
  const std::string job = workspace.job(edited(kJob, refusal.edits));
  if (refusal.prepare) refusal.prepare(workspace);
  const Finished f = workspace.run(hyperrun({job}));
  expect_refused(workspace, f, refusal.status, refusal.said);
  EXPECT_EQ(f.out, "");
}

// The refusal by the controller that rank 0 starts; the other ranks are in MPI_Init and must end as well.
class RefusedForeignJob : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedForeignJob, BySingleRankOnly) {
  const Refusal& refusal = GetParam();
  const Workspace workspace;
  const std::string job = workspace.job(edited(kJob, refusal.edits));
  if (refusal.prepare) refusal.prepare(workspace);
  const Finished f = workspace.run(mpirun(2, {job}));
  expect_refused(workspace, f, refusal.status, refusal.said);
  EXPECT_EQ(occurrences(f.err, "error["), 1) << f;
}

Refusal corpus(std::string name, std::string text, int status, Fragments said) {
  return {std::move(name), {}, status, std::move(said), [text](const Workspace& w) {
            put_file(w / "corpus.txt", text);
          }};
}

const Refusal kJobs[] = {
    {"UnknownField",
     {{"steps: 6", "stepz: 6"}},
     3,
     {"job.textproto:6:12: error[unknown-field]", "legal: steps, batch", "did you mean \"steps\"?"}},
    {"MissingField",
     {{"steps: 6", ""}},
     3,
     {"job.textproto:6:1: error[missing-field]: \"training\" has no \"steps\"", "fix: add steps"}},
    {"Syntax", {{"steps: 6", "steps = 6"}}, 3, {"job.textproto:6:18: error[syntax]"}},
    {"BadValue",
     {{"kv_heads: 2", "kv_heads: 3"}},
     3,
     {"job.textproto:3:39: error[bad-value]", "legal: 1, 2, 4"}},
    {"MeshOfOtherDevices", {{"devices: 2", "devices: 4"}}, 3, {"error[bad-layout]", "legal: dp 4"}},
    {"HeadsThatDoNotDivide",
     {{"devices: 2", "devices: 4"},
      {R"(mesh { name: "dp" size: 2 } presets: "dp")", R"(mesh { name: "tp" size: 4 } presets: "tp")"}},
     3,
     {"job.textproto:", "error[bad-layout]", "kv_heads", "legal: "}},
    {"BatchThatDoesNotDivide",
     {{"batch: 8", "batch: 7"}},
     3,
     {"job.textproto:6:21: error[bad-value]", "legal: "}},
    {"BudgetTooSmall",
     {{"16 MiB", "1 MiB"}},
     4,
     {"job.textproto:2:24: error[does-not-fit]", "the budget is 1048576", "optimizer",
      "legal: ", "bytes or more", "fix: raise supernode.hbm to", "\n  the least that was tried needs "}},
    {"MoreMemoryThanTheHostHas",
     {{"16 MiB", "900 TiB"}, {"hidden: 64", "hidden: 65536"}},
     4,
     {"job.textproto:2:13: error[does-not-fit]: 2 devices of this host need ", " of HBM each), and ",
      "legal: up to 0 such devices, or 2 of up to ", "fix: take more hosts or a smaller supernode"}},
    {"MissingCorpus",
     {{"corpus.txt", "nothing.txt"}},
     6,
     {"job.textproto:5:8: error[missing-file]", "nothing.txt"}},
    {"CorpusIsAFolderWithoutText",
     {{"corpus.txt", "empty"}},
     6,
     {"error[bad-corpus]", "empty"},
     [](const Workspace& w) { fs::create_directory(w / "empty"); }},
    corpus("EmptyCorpus", "", 6, {"corpus.txt: error[bad-corpus]"}),
    corpus("ShortCorpus", "A few words.", 6, {"corpus.txt: error[bad-corpus]", "fix: take a longer text"}),
    corpus("BinaryCorpus", "text, and then \xff", 6,
           {"corpus.txt: error[bad-corpus]: byte 15 begins no character"}),
    {"TokenizerCutShort",
     {{"corpus: \"corpus.txt\"", R"(corpus: "corpus.txt" tokenizer: "tok.json")"}},
     6,
     {"tok.json: error[bad-tokenizer]: not valid JSON, it ends too early (line 2, column ",
      "fix: give a tokenizer.json"},
     [](const Workspace& w) { put_file(w / "tok.json", "{\n \"model\": {"); }},
    {"TokenizerOfNothing",
     {{"corpus: \"corpus.txt\"", R"(corpus: "corpus.txt" tokenizer: "tok.json")"}},
     6,
     {"tok.json", "error[bad-tokenizer]", "fix: give a tokenizer.json"},
     [](const Workspace& w) { put_file(w / "tok.json", "{}"); }},
    {"TooMuchToGenerate",
     {{"directory: \"out\"", R"(directory: "out" generate { prompt: "The" tokens: 64 })"}},
     3,
     {"job.textproto:7:", "error[bad-value]", "legal: 0 to ", "fix: generate fewer tokens"}},
    {"PolicyWithoutSamples",
     {{"training {", "training { policy { clip: 0.2 }"}},
     3,
     {"error[bad-value]: a policy is trained on samples", "legal: a job without it", "fix: leave it out"}},
    {"MissingCheckpoint",
     {{"directory: \"out\"", R"(directory: "out" resume: "nothing")"}},
     6,
     {"job.textproto:7:24: error[missing-file]", "nothing"}},
    {"FolderThatIsNoCheckpoint",
     {{"directory: \"out\"", R"(directory: "out" resume: "empty")"}},
     6,
     {"empty", "error[missing-file]", "model.safetensors"},
     [](const Workspace& w) { fs::create_directory(w / "empty"); }},
    {"RunDirectoryUnderAFile",
     {{"directory: \"out\"", R"(directory: "corpus.txt/run")"}},
     7,
     {"corpus.txt: error[unwritable]", "fix: a file stands where a folder is needed"}},
    {"RunDirectoryIsAFile",
     {{"directory: \"out\"", R"(directory: "corpus.txt")"}},
     7,
     {"corpus.txt: error[unwritable]", "fix: "}},
    {"RunDirectoryInProc",
     {{"directory: \"out\"", R"(directory: "/proc/run")"}},
     7,
     {"/proc/run: error[unwritable]", "fix: "}},
};

std::string name_of(const ::testing::TestParamInfo<Refusal>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Refusals, RefusedJob, ::testing::ValuesIn(kJobs), name_of);

// One refusal at each moment of a start: read, compiled, host, text, prompt, run directory.
std::vector<Refusal> one_of_each() {
  std::vector<Refusal> some;
  for (const Refusal& refusal : kJobs)
    for (const char* name : {"UnknownField", "BudgetTooSmall", "MoreMemoryThanTheHostHas", "ShortCorpus",
                             "TooMuchToGenerate", "RunDirectoryUnderAFile"})
      if (refusal.name == name) some.push_back(refusal);
  return some;
}

INSTANTIATE_TEST_SUITE_P(Refusals, RefusedForeignJob, ::testing::ValuesIn(one_of_each()), name_of);

// ---- Files that are no jobs, and command lines

struct BadCommand {
  std::string name;
  std::vector<std::string> arguments;
  int status;
  Fragments said;
};

void PrintTo(const BadCommand& command, std::ostream* stream) { *stream << command.name; }

class RefusedCommand : public ::testing::TestWithParam<BadCommand> {};

TEST_P(RefusedCommand, WithItsReason) {
  const Workspace workspace;
  workspace.job();
  put_file(workspace / "garbage.pb", std::string("\x01\x00\xfe\xffgarbage", 11));
  put_file(workspace / "empty.textproto", "");
  put_file(workspace / "hosts", "localhost slots=1\n");
  const Finished f = workspace.run(hyperrun(GetParam().arguments));
  expect_refused(workspace, f, GetParam().status, GetParam().said);
  EXPECT_EQ(f.out, "");
}

const BadCommand kCommands[] = {
    {"NoArguments", {}, 2, {"error[usage]: ", "legal: run, check, sim, plan", "--help"}},
    {"UnknownOption", {"job.textproto", "--nonsense"}, 2, {"error[usage]: ", "--nonsense", "--help"}},
    {"OptionBeforeTheJob", {"--nonsense", "job.textproto"}, 2, {"error[usage]: ", "--nonsense", "--help"}},
    {"MistypedCommand",
     {"chek", "job.textproto"},
     2,
     {"error[usage]: no command chek, and no job of that name\n", "legal: run, check, sim, plan",
      "fix: did you mean check? hyperrun --help"}},
    {"MistypedCommandAlone", {"plam"}, 2, {"no command plam", "did you mean plan?"}},
    {"LongerThanTheCommand", {"simulate", "job.textproto"}, 2, {"no command simulate", "did you mean sim?"}},
    {"ShorterThanTheCommand", {"cal", "--out", "x"}, 2, {"no command cal", "did you mean calibrate?"}},
    {"NoCommandAtAll", {"train", "job.textproto"}, 2, {"no command train", "fix: hyperrun --help"}},
    {"MissingJobWithoutAnEnding", {"nothing"}, 6, {"nothing: error[missing-file]"}},
    {"TwoJobs", {"job.textproto", "job.textproto"}, 2, {"job.textproto", "--help"}},
    {"CheckWithoutAJob",
     {"check"},
     2,
     {"job is required", "legal: job: the job", "add it; hyperrun check --help"}},
    {"MissingJob", {"nothing.textproto"}, 6, {"nothing.textproto: error[missing-file]", "fix: "}},
    {"CheckOfAMissingJob", {"check", "nothing.textproto"}, 6, {"nothing.textproto: error[missing-file]"}},
    {"SimOfAMissingJob", {"sim", "nothing.textproto"}, 6, {"nothing.textproto: error[missing-file]"}},
    {"Folder", {"."}, 6, {".: error[missing-file]: the job is a directory"}},
    {"BinaryGarbage", {"garbage.pb"}, 3, {"garbage.pb: error[syntax]"}},
    {"EmptyJob", {"empty.textproto"}, 3, {"empty.textproto: error[syntax]"}},
    {"CorpusAsJob", {"corpus.txt"}, 3, {"corpus.txt:1:", "error[syntax]"}},
    {"ResumeFromNothing",
     {"job.textproto", "--resume", "nothing"},
     6,
     {"--resume: error[missing-file]", "nothing"}},
    {"MissingHostfile",
     {"job.textproto", "--hostfile", "nothing"},
     6,
     {"--hostfile: error[missing-file]", "nothing"}},
    {"HostfileWithFewerSlots",
     {"job.textproto", "--hostfile", "hosts", "--ranks", "2"},
     5,
     {"hosts:1: error[too-few-ranks]: the hosts have 1 slot, the run has 2 ranks", "legal: slots that",
      "fix: raise slots (localhost slots=2), add hosts, or let a rank host several devices (--ranks 1)"}},
    {"UnknownOptionAlone", {"--bogus"}, 2, {"error[usage]: ", "--bogus", "legal: job, ", "--help"}},
    {"OptionWithASlip",
     {"job.textproto", "--resum", "x"},
     2,
     {"not expected: --resum", "fix: did you mean --resume? hyperrun run --help"}},
    {"UnknownOptionOfACommand", {"check", "--bogus"}, 2, {"error[usage]: ", "--bogus", "--help"}},
    {"EmptyRunDirectory",
     {"job.textproto", "--run-dir", ""},
     2,
     {"--run-dir: error[usage]: it cannot be empty", "legal: any", "--help"}},
    {"VerifyNothing", {"verify"}, 2, {"error[usage]: verify needs a job", "fix: hyperrun verify --help"}},
    {"VerifyAMissingJob", {"verify", "nothing.textproto"}, 6, {"nothing.textproto: error[missing-file]"}},
    {"VerifyNoSteps",
     {"verify", "job.textproto", "--steps", "0"},
     2,
     {"--steps: error[usage]: 0 is less than 1", "legal: 1 to 1000000"}},
    {"ReportOfNothing", {"report", "nothing"}, 6, {"nothing/report.json: error[missing-file]"}},
    {"ReportOfSomethingElse", {"report", "garbage.pb"}, 6, {"garbage.pb", "error[missing-file]"}},
    {"TemperatureThatIsNoNumber",
     {"generate", ".", "--temperature", "nan"},
     2,
     {"--temperature: error[usage]: \"nan\" is no number", "legal: 0 to 1e+06"}},
    {"TopPThatIsNoNumber",
     {"generate", ".", "--top-p", "nan"},
     2,
     {"--top-p: error[usage]: \"nan\" is no number", "legal: 1e-06 to 1"}},
    {"TraceIntoNowhere",
     {"sim", "job.textproto", "--trace", "nothing/trace"},
     7,
     {"nothing/trace: error[unwritable]", "fix: give --trace a file"}},
};

INSTANTIATE_TEST_SUITE_P(Refusals, RefusedCommand, ::testing::ValuesIn(kCommands),
                         [](const auto& info) { return info.param.name; });

TEST(RefusedCheck, SaysTheSameAsTheRun) {
  const Workspace workspace;
  const std::string job = workspace.job(edited(kJob, {{"16 MiB", "1 MiB"}}));
  const Finished f = workspace.run(hyperrun({"check", job}));
  expect_refused(workspace, f, 4, {"job.textproto:2:24: error[does-not-fit]", "legal: "});
  EXPECT_THAT(f.out, HasSubstr("all-reduce"));  // the plan is what tells why
}

TEST(RefusedCheck, NamesEveryInputThatIsMissing) {
  const Workspace workspace;
  const std::string job =
      workspace.job(edited(kJob, {{R"(corpus: "corpus.txt")", R"(corpus: "a.txt" tokenizer: "b.json")"}}));
  expect_refused(workspace, workspace.run(hyperrun({"check", job})), 6,
                 {"job.textproto:5:8: error[", "a.txt", "job.textproto:5:24: error[", "b.json"});
}

// Follows the printed remedy; fit_test.cc tries the others.
TEST(RefusedCheck, TheRemedyWorks) {
  const Workspace workspace;
  const auto check = [&](const std::string& hbm) {
    return workspace.run(hyperrun({"check", workspace.job(edited(kJob, {{"16 MiB", hbm}}))}));
  };
  std::smatch enough;
  const std::string said = check("1 MiB").err;
  ASSERT_TRUE(std::regex_search(said, enough, std::regex("fix: raise supernode.hbm to \"(([0-9]+) B)\"")))
      << said;
  EXPECT_THAT(check(enough[1]), Succeeded());

  const Finished short_of_it = check(std::to_string(std::stoll(enough[2]) - 1) + " B");
  expect_refused(
      workspace, short_of_it, 4,
      {"fix: add training.recompute ", "\n    or add the preset zero1: needs ",
       " more than with enough HBM)\n         in parallel, replacing presets: presets: [\"dp\", \"zero1\"]\n",
       "\n    or raise supernode.hbm to"});
}

// ---- Number of ranks

TEST(RefusedRanks, MoreThanTheDevicesOfTheJob) {
  const Workspace workspace;
  const std::string job = workspace.job();
  const Finished f = workspace.run(mpirun(3, {job}));
  expect_refused(workspace, f, 5,
                 {"error[mpi]: too many ranks: the job asks for 2 devices, mpirun started 3 ranks",
                  "legal: -np 1 to 2"});
  EXPECT_EQ(occurrences(f.err, "error["), 1) << f;
}

// ---- Damaged checkpoints

class RefusedCheckpoint : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    made_ = std::make_unique<Workspace>();
    ASSERT_THAT(made_->run(hyperrun({made_->job(), "--run-dir", "good"})), Succeeded());
  }
  static void TearDownTestSuite() { made_.reset(); }

  // A job with `edits` resumed from a copy that `damage` has changed is refused.
  static void expect(const std::function<void(const fs::path&)>& damage, const Fragments& said,
                     const std::vector<Edit>& edits = {}) {
    const Workspace workspace;
    fs::copy(*made_ / "good/checkpoints/step-000006", workspace / "ckpt", fs::copy_options::recursive);
    damage(workspace / "ckpt");
    const std::string job = workspace.job(edited(kJob, edits));
    expect_refused(workspace, workspace.run(hyperrun({job, "--resume", "ckpt"})), 6, said);
  }

  static inline std::unique_ptr<Workspace> made_;
};

const char* const kFiles[] = {"model.safetensors", "optimizer.safetensors", "hyperrun_state.json"};

TEST_F(RefusedCheckpoint, CutShort) {
  for (const std::string file : kFiles)
    expect([&](const fs::path& ckpt) { fs::resize_file(ckpt / file, fs::file_size(ckpt / file) / 2); },
           {"ckpt/" + file + ": ", "error[bad-checkpoint]"});
}

TEST_F(RefusedCheckpoint, Empty) {
  for (const std::string file : kFiles)
    expect([&](const fs::path& ckpt) { fs::resize_file(ckpt / file, 0); },
           {"ckpt/" + file + ": error[bad-checkpoint]"});
}

TEST_F(RefusedCheckpoint, Overwritten) {
  for (const std::string file : kFiles)
    expect(
        [&](const fs::path& ckpt) {
          std::string bytes = content(ckpt / file);
          bytes.replace(bytes.size() / 3 > 20 ? 20 : 1, 8, "garbage!");
          put_file(ckpt / file, bytes);
        },
        {"ckpt/" + file + ": error[bad-checkpoint]"});
}

// Sets every number of a tensor to `value`.
void fill_tensor(const fs::path& file, const char* tensor, float value) {
  std::string bytes = content(file);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto json = nlohmann::ordered_json::parse(bytes.substr(8, header));
  const auto offsets = json.at(tensor).at("data_offsets").get<std::vector<std::size_t>>();
  for (std::size_t at = offsets[0]; at < offsets[1]; at += sizeof value)
    std::memcpy(bytes.data() + 8 + header + at, &value, sizeof value);
  put_file(file, bytes);
}

TEST_F(RefusedCheckpoint, NotFinite) {
  const Workspace workspace;
  fs::copy(*made_ / "good/checkpoints/step-000006", workspace / "ckpt", fs::copy_options::recursive);
  const auto refused = [&](float value, const Fragments& said) {
    fill_tensor(workspace / "ckpt/model.safetensors", "lm_head.weight", value);
    const Finished f = workspace.run(hyperrun({"generate", "ckpt", "--prompt", "The", "--tokens", "2"}));
    expect_refused(workspace, f, static_cast<int>(ExitCode::kDiverged), said);
    EXPECT_EQ(f.out, "");
  };
  for (const float value : {std::nanf(""), std::numeric_limits<float>::infinity()})
    refused(value, {"ckpt: lm_head.weight: error[not-finite]"});
  refused(3e38F, {"prompt 0: error[not-finite]: the logits of its token 1 are not finite"});
}

// The default number of new tokens is what fits; an omitted number is not reported as a fault of the prompt.
TEST_F(RefusedCheckpoint, PromptsThatDoNotFit) {
  const Workspace workspace;
  fs::copy(*made_ / "good/checkpoints/step-000006", workspace / "ckpt", fs::copy_options::recursive);
  EXPECT_THAT(workspace.run(hyperrun({"generate", "ckpt", "--prompt", ""})), Succeeded());
  expect_refused(
      workspace, workspace.run(hyperrun({"generate", "ckpt", "--prompt", "", "--tokens", "64"})), 3,
      {"prompt 0: error[bad-value]: it has 1 token, with 64 new ones too many for a sequence of 32"});
  put_file(workspace / "prompts.txt", "\n\n");
  expect_refused(workspace, workspace.run(hyperrun({"generate", "ckpt", "--prompts", "prompts.txt"})), 2,
                 {"prompts.txt: error[usage]: there is no prompt in it"});
}

// A warning, not a refusal: seven devices are legal, but no faster than one.
TEST_F(RefusedCheckpoint, IsGeneratedFromByDevicesThatShareNothing) {
  const Workspace workspace;
  fs::copy(*made_ / "good/checkpoints/step-000006", workspace / "ckpt", fs::copy_options::recursive);
  const auto generated = [&](const char* devices) {
    return workspace.run(
        hyperrun({"generate", "ckpt", "--devices", devices, "--prompt", "The", "--tokens", "2"}));
  };
  const Finished seven = generated("7"), two = generated("2");
  EXPECT_THAT(seven, Succeeded());
  EXPECT_THAT(seven.err, HasSubstr("--devices 7: nothing of this model's layers divides by 7"));
  EXPECT_THAT(two, Succeeded());
  EXPECT_EQ(two.err.find("nothing of this model"), std::string::npos) << two;
}

TEST_F(RefusedCheckpoint, WithoutItsWeights) {
  expect([](const fs::path& ckpt) { fs::remove(ckpt / "model.safetensors"); },
         {"ckpt", "error[missing-file]", "model.safetensors"});
}

TEST_F(RefusedCheckpoint, OfAnotherModel) {
  const auto nothing = [](const fs::path&) {};
  expect(nothing,
         {"ckpt/config.json: error[bad-checkpoint]: it is of another model: hidden is 64 (job: 128)"},
         {{"hidden: 64", "hidden: 128"}});
  for (const char* layers : {"1", "3"})
    expect(nothing,
           {"ckpt/config.json: error[bad-checkpoint]: it is of another model: layers is 2 (job: " +
            std::string(layers) + ")"},
           {{"layers: 2", "layers: " + std::string(layers)}});
  expect(nothing, {"it is of another model: rope_theta is 10000 (job: 500)"},
         {{"layers: 2", "layers: 2 rope_theta: 500"}});
}

TEST(RefusedGpt2Checkpoint, OfAnotherTableOfPositions) {
  const Workspace workspace;
  const auto job = [&](const std::string& positions) {
    return workspace.job(edited(kJob, {{"kv_heads: 2", "name: \"gpt2\" positions: " + positions}}));
  };
  ASSERT_THAT(workspace.run(hyperrun({job("48"), "--run-dir", "good"})), Succeeded());
  for (const auto& [rows, count] : {std::pair{"64", "64"}, {"0", "32"}})  // 0: as many as the sequence has
    expect_refused(workspace, workspace.run(hyperrun({job(rows), "--resume", "good"})), 6,
                   {"config.json: error[bad-checkpoint]: it is of another model: positions is 48 (job: " +
                    std::string(count) + ")"});
}

// Another program's checkpoint may have no config.json.
TEST_F(RefusedCheckpoint, OfAnotherModelByItsTensors) {
  const auto unnamed = [](const fs::path& ckpt) { fs::remove(ckpt / "config.json"); };
  expect(unnamed,
         {"ckpt: model.embed_tokens.weight: error[bad-checkpoint]", "[320, 64]", "legal: [320, 128]"},
         {{"hidden: 64", "hidden: 128"}});
  expect(unnamed, {"ckpt: model.layers.2.", "error[bad-checkpoint]: the tensor is missing"},
         {{"layers: 2", "layers: 3"}});
  expect(unnamed, {"ckpt: model.layers.1.", "error[bad-checkpoint]: is in the checkpoint, and the job's"},
         {{"layers: 2", "layers: 1"}});
}

TEST_F(RefusedCheckpoint, ThatCannotBeGoneOnFrom) {
  const auto state = [](const std::string& text) {
    return [text](const fs::path& ckpt) { put_file(ckpt / "hyperrun_state.json", text); };
  };
  expect(state(R"({"next_step": -5, "seed": 1})"),
         {"hyperrun_state.json: next_step: error[bad-checkpoint]: is -5"});
  const std::string another = R"({"next_step": 3, "seed": 7})";
  const Workspace workspace;
  fs::copy(*made_ / "good/checkpoints/step-000006", workspace / "ckpt", fs::copy_options::recursive);
  put_file(workspace / "ckpt/hyperrun_state.json", another);
  expect_refused(workspace, workspace.run(hyperrun({workspace.job(kJob), "--resume", "ckpt"})), 3,
                 {"error[bad-value]: the checkpoint was trained with seed 7, the job's is", "legal: 7"});
  put_file(workspace / "ckpt/hyperrun_state.json", R"({"next_step": 500})");
  expect_refused(workspace, workspace.run(hyperrun({workspace.job(kJob), "--resume", "ckpt"})), 3,
                 {"error[bad-value]: nothing is left to do: the checkpoint has 500 steps behind it",
                  "legal: more than 500"});
}

TEST(RefusedMachine, WithoutAPlaceForTheDump) {
  const Workspace workspace;
  const std::string job = workspace.job(kJob);
  const Finished f = workspace.run({"/usr/bin/env", "HYPERRUN_DUMP=" + job, HYPERRUN_BINARY, job});
  expect_refused(workspace, f, 7, {"HYPERRUN_DUMP: error[unwritable]: cannot write " + job + "/1-model.txt"});
}

TEST(RefusedMachine, WithoutMpirun) {
  const Workspace workspace;
  std::vector<std::string> command{"/usr/bin/env", "PATH=/nowhere"};
  for (const std::string& word : hyperrun({workspace.job(kJob)})) command.push_back(word);
  expect_refused(workspace, workspace.run(command), 5,
                 {"error[mpi]: cannot run mpirun: no folder in PATH has it", "fix: install it"});
}

// From too little memory to enough: a job is refused or runs, and never starts and dies. MPI's own needs show
// at the border.
TEST(RefusedRoom, WhereSharedMemoryIsSlightlyTooSmall) {
  const std::vector<std::vector<Edit>> kJobs{{},
                                             {{"hbm: \"16 MiB\"", "hbm: \"1800 KiB\" pool: \"64 MiB\""},
                                              {"data {", "memory { policy: \"hyperoffload\" }\ndata {"}}};
  for (const std::vector<Edit>& edits : kJobs) {
    const Workspace workspace;
    if (workspace.run(with_shared_memory(64, {"true"})).status != 0)
      GTEST_SKIP() << "no namespace can be made here";
    const std::string job = workspace.job(edited(kJob, edits));
    std::int64_t too_small = 256, enough = 64 << 10;
    while (enough - too_small > 64) {
      const std::int64_t kib = (too_small + enough) / 2;
      const Finished f = workspace.run(with_shared_memory(kib, hyperrun({job})));
      ASSERT_TRUE(f.status == 0 || f.status == 4) << kib << " KiB" << f;
      if (f.status == 4) {
        for (const char* said : {"error[does-not-fit]", " need ", " are free", "legal: ", "fix: "})
          EXPECT_THAT(f.err, HasSubstr(said)) << kib << " KiB" << f;
      }
      (f.status == 0 ? enough : too_small) = kib;
      fs::remove_all(workspace / "out");
    }
    // All but MPI's own memory is checked before anything starts.
    expect_refused(workspace, workspace.run(with_shared_memory(too_small - 512, hyperrun({job}))), 4,
                   {"job.textproto:2:", "for MPI and its messages"});
  }
}

// There is enough for each device, but not for all together. That is found before a rank starts, to the page.
TEST(RefusedRoom, WhereFlashIsTooSmallForAllDevicesTogether) {
  const Workspace workspace;
  const std::string disk = (workspace / "disk").string();
  fs::create_directory(disk);
  if (workspace.run(with_disk(disk, 64, {"true"})).status != 0)
    GTEST_SKIP() << "no namespace can be made here";
  const std::string job =
      workspace.job(edited(kJob, {{"hbm: \"16 MiB\"", "hbm: \"1800 KiB\" flash: \"64 MiB\""},
                                  {"data {", "memory { policy: \"hyperoffload\" tier: \"flash\" }\ndata {"},
                                  {"directory: \"out\"", "directory: \"disk/run/out\""}}));
  const auto run = [&](std::int64_t kib) { return workspace.run(with_disk(disk, kib, hyperrun({job}))); };
  const Finished f = run(8);
  expect_refused(workspace, f, 4,
                 {disk + "/run/out: error[does-not-fit]: what the devices of this host keep on flash takes ",
                  ", in 2 files together; 8192 bytes (8.00 KiB) are free", "fix: free "});
  std::smatch takes;
  ASSERT_TRUE(std::regex_search(f.err, takes, std::regex("on flash takes (\\d+) bytes"))) << f;
  const std::int64_t kib = std::stoll(takes[1]) / 1024;
  EXPECT_EQ(kib % 4, 0) << "whole pages";
  expect_refused(workspace, run(kib - 4), 4, {"fix: free 4096 bytes (4.00 KiB) there"});
  // Enough for all, and for other remains of a run.
  EXPECT_EQ(run(kib + (4 << 10)).status, 0);
}

TEST(RefusedOutput, ThatDoesNotArrive) {
  const Workspace workspace;
  const std::string job = workspace.job(kJob);
  // The run itself succeeds; only the report command fails.
  for (const std::string& words :
       {std::string("--help"), "check " + job, "sim " + job, job, std::string("report out")}) {
    const Finished f =
        workspace.run({"sh", "-c", std::string(HYPERRUN_BINARY) + " " + words + " > /dev/full"});
    EXPECT_EQ(f.status, 7) << f;
    EXPECT_THAT(f.err,
                HasSubstr("standard output: error[unwritable]: cannot write all of the output\n  fix: "))
        << f;
  }
  EXPECT_EQ(nlohmann::json::parse(content(workspace / "out/manifest.json")).at("state"), "finished");
}

// No file of the run takes the descriptor of a closed output.
TEST(RefusedOutput, ThatIsClosed) {
  for (const char* closed : {">&-", "2>&-", "<&- >&- 2>&-"}) {
    const Workspace workspace;
    const Finished f =
        workspace.run({"sh", "-c", std::string(HYPERRUN_BINARY) + " " + workspace.job(kJob) + " " + closed});
    EXPECT_EQ(f.status, std::string(closed).find(">&-") == 0 || closed[0] == '<' ? 7 : 0) << closed << f;
    std::istringstream lines(content(workspace / "out/metrics.jsonl"));
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count)
      EXPECT_TRUE(nlohmann::json::accept(line)) << closed << ": " << line;
    EXPECT_GT(count, 0) << closed;
  }
}

}  // namespace
}  // namespace hyperrun::testing
