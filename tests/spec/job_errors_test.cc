// A table of bad jobs: a change to a good one, with the code, place and words of the expected error. The full
// messages are compared with golden/job_errors.txt.
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "proto/job.pb.h"
#include "runtime/spec/job_reader.h"
#include "tests/spec/job_texts.h"

namespace hyperrun {
namespace {

using ::testing::HasSubstr;

struct Bad {
  const char* from;  // replaced in the good job
  const char* to;
  Code code;
  const char* place;  // "line:column"
  const char* cause;
  const char* legal = "";
  const char* fix = "";
};

constexpr const char* kPresets = "presets: [\"dp\", \"tp\"]";
constexpr const char* kRuleDims = "dims { dim: \"heads\" axes: \"tp\" }";

const Bad kBad[] = {
    // Syntax.
    {"heads: 4", "heads = 4", Code::kSyntax, "6:9", "Expected \":\", found \"=\"", "NAME: VALUE"},
    {"run { generate { prompt: \"x\" tokens: 4 } }", "run {", Code::kSyntax, "25:1", "ends inside a block",
     "", "close the block"},
    {"lr: 1e-3\n}", "lr: 1e-3\n}\n}", Code::kSyntax, "24:1", "closes no block", "", "remove it"},
    {"heads: 4", "heads: 4 @", Code::kSyntax, "6:12", "not @"},
    {"\"x\"", "\"x", Code::kSyntax, "24:42", "no closing quote on its line", "on one line", "close it"},
    {"steps: 10", "steps: 10 steps: 11", Code::kSyntax, "19:13", "\"steps\" is given twice", "", "keep one"},
    {"model {", "model 3 {", Code::kSyntax, "3:7", "Expected \"{\", found \"3\""},
    // Names.
    {"steps: 10", "stepz: 10", Code::kUnknownField, "19:3", "\"training\" has no field \"stepz\"",
     "steps, batch, micro_batches, lr", "did you mean \"steps\"?"},
    {"hidden: 64", "hidden: 64 dropout: 0.1", Code::kUnknownField, "5:14",
     "\"model\" has no field \"dropout\"", "layers, hidden", "remove it"},
    {"heads: 4", "heads: 4 batch: 8", Code::kUnknownField, "6:12", "\"model\" has no field \"batch\"", "",
     "\"batch\" belongs in \"training\""},
    {"data {", "dta {", Code::kUnknownField, "17:1", "the job has no field \"dta\"", "name, supernode, model",
     "did you mean \"data\"?"},
    {"axes: \"tp\"", "axis: \"tp\"", Code::kUnknownField, "15:45", "\"dims\" has no field \"axis\"",
     "dim, axes"},
    {"heads: 4", "Heads: 4", Code::kUnknownField, "6:3", "no field \"Heads\"", "", "did you mean \"heads\"?"},
    {"heads: 4", "heads: 4 [foo.bar]: 3", Code::kUnknownField, "6:13", "no field \"foo.bar\""},
    // Missing.
    {"  steps: 10\n", "", Code::kMissingField, "18:1", "\"training\" has no \"steps\"", "1 to 1000000000",
     "add steps: ..."},
    {"data { corpus: \"/c.txt\" }\n", "", Code::kMissingField, "", "the job has no \"data\"", "data { ... }"},
    {"hbm: \"64 MiB\"", "", Code::kMissingField, "2:1", "no \"hbm\"", "\"64 MiB\""},
    {"name: \"tp\" size: 2", "name: \"tp\"", Code::kMissingField, "13:3", "\"mesh\" has no \"size\""},
    {"tokens: 4", "", Code::kMissingField, "24:7", "\"generate\" has no \"tokens\""},
    // Values of the wrong kind.
    {"steps: 10", "steps: ten", Code::kBadValue, "19:10", "\"steps\" cannot be ten", "1 to 1000000000"},
    {"steps: 10", "steps: 2.5", Code::kBadValue, "19:10", "\"steps\" cannot be 2.5", "1 to 1000000000"},
    {"steps: 10", "steps: 99999999999", Code::kBadValue, "19:10", "\"steps\" cannot be 99999999999"},
    {"heads: 4", "\theads: \tfour", Code::kBadValue, "6:12", "\"heads\" cannot be four"},
    {"lr: 1e-3", "lr: fast", Code::kBadValue, "22:7", "\"lr\" cannot be fast", "above 0"},
    {"hbm: \"64 MiB\"", "hbm: 64", Code::kBadValue, "2:29", "\"hbm\" cannot be 64", "\"64 MiB\"",
     "in quotes"},
    {"heads: 4", "heads: 4 tied_head: yes", Code::kBadValue, "6:23", "\"tied_head\" cannot be yes",
     "true, false"},
    {"run {", "run { streams: TWO", Code::kBadValue, "24:16", "\"streams\" cannot be TWO",
     "AUTO, ONE, PER_STREAM"},
    {"run {", "run { streams: 7", Code::kBadValue, "24:7", "\"streams\" cannot be 7",
     "AUTO, ONE, PER_STREAM"},
    {"run {", "run { seed: -1", Code::kBadValue, "24:13", "\"seed\" cannot be negative", "0 to"},
    // Ranges.
    {"layers: 2", "layers: 0", Code::kBadValue, "4:3", "\"layers\" cannot be 0", "1 to 4096"},
    {"hidden: 64", "hidden: -64", Code::kBadValue, "5:3", "\"hidden\" cannot be -64"},
    {"vocab: 512", "vocab: 100", Code::kBadValue, "8:3", "\"vocab\" cannot be 100", "257 to 4194304"},
    {"lr: 1e-3", "lr: 0", Code::kBadValue, "22:3", "\"lr\" cannot be 0", "above 0"},
    {"lr: 1e-3", "lr: nan", Code::kBadValue, "22:3", "\"lr\" cannot be nan", "above 0"},
    {"lr: 1e-3", "lr: 1e-3 beta2: 1", Code::kBadValue, "22:12", "\"beta2\" cannot be 1", "0 to below 1"},
    {"lr: 1e-3", "lr: 1e-3 min_lr: 1e-2", Code::kBadValue, "22:12", "\"min_lr\" is above \"lr\"", "0 to lr"},
    {"lr: 1e-3", "lr: 1e-3 warmup_steps: 11", Code::kBadValue, "22:12", "longer than the training",
     "0 to 10"},
    {"run {", "run { trace_first: 10 trace_steps: 1", Code::kBadValue, "24:7", "after the last step",
     "0 to 9"},
    {"\"/c.txt\"", "\"\"", Code::kBadValue, "17:8", "\"corpus\" is empty"},
    {"\"t\"", "\"\\xff\"", Code::kBadValue, "1:1", "\"name\" is not UTF-8"},
    {"\"/c.txt\"", "\"a\\0b\"", Code::kBadValue, "17:8", "zero byte"},
    {"\"t\"", "\"a/b\"", Code::kBadValue, "1:1", "cannot name a run directory", "letters, digits"},
    {"run {", "run { directory: \"r/{date}\"", Code::kBadValue, "24:7", "holds {date}", "{job}, {time}"},
    // Quantities.
    {"64 MiB", "64 Mb", Code::kBadValue, "2:24", "\"hbm\" cannot be \"64 Mb\"", "KiB, MiB, GiB"},
    {"64 MiB", "64", Code::kBadValue, "2:24", "\"hbm\" cannot be \"64\"", "KiB, MiB, GiB"},
    {"64 MiB", "0 B", Code::kBadValue, "2:24", "\"hbm\" cannot be \"0 B\"", "1 B to 4096 TiB"},
    {"64 MiB", "1.5 B", Code::kBadValue, "2:24", "\"hbm\" cannot be \"1.5 B\"", "whole number of bytes"},
    {"devices: 4", "devices: 4 link_latency: \"-1 us\"", Code::kBadValue, "2:24", "cannot be \"-1 us\"",
     "0 ns"},
    {"devices: 4", "devices: 4 cube_flops: \"2 TB/s\"", Code::kBadValue, "2:24", "\"cube_flops\" cannot be",
     "FLOP/s"},
    {"devices: 4", "devices: 4 hbm_bandwidth: \"0 B/s\"", Code::kBadValue, "2:24", "cannot be \"0 B/s\"",
     "above 0"},
    {"run {", "run { heartbeat: \"1 ms\"", Code::kBadValue, "24:7", "\"heartbeat\" cannot be \"1 ms\"",
     "0.01 s to 3600 s"},
    // Model.
    {"kv_heads: 2", "kv_heads: 3", Code::kBadValue, "7:3", "kv_heads 3 does not divide heads 4", "1, 2, 4"},
    {"hidden: 64", "hidden: 66", Code::kBadValue, "6:3", "heads 4 does not divide hidden 66",
     "1, 2, 3, 6, 11, 22, 33, 66", "give head_dim"},
    {"hidden: 64", "hidden: 60", Code::kBadValue, "3:1", "head_dim 15 is odd", "even", "hidden / heads"},
    {"hidden: 64", "hidden: 64 head_dim: 7", Code::kBadValue, "5:14", "head_dim 7 is odd"},
    {"heads: 4", "heads: 4 name: \"lama\"", Code::kBadValue, "6:12", "\"lama\" is unknown", "\"llama\"",
     "did you mean \"llama\"?"},
    // Experts.
    {"heads: 4", "heads: 4 experts { count: 4 choices: 5 ffn: 8 }", Code::kBadValue, "6:31",
     "choices 5 of 4 experts", "1 to 4"},
    {"heads: 4", "heads: 4 experts { count: 1 ffn: 8 }", Code::kBadValue, "6:22", "choices 2 of 1 experts",
     "1 to 1"},
    {"heads: 4", "heads: 4 experts { count: 4 }", Code::kMissingField, "6:12", "\"experts\" has no \"ffn\""},
    {"heads: 4", "heads: 4 experts { count: 4 ffn: 8 dense_layers: 2 }", Code::kBadValue, "6:38",
     "no layer is left for the experts", "0 to 1"},
    {"heads: 4", "heads: 4 experts { count: 4 ffn: 8 scoring: \"tanh\" }", Code::kBadValue, "6:38",
     "\"tanh\" is unknown", "\"sigmoid\""},
    {"heads: 4", "heads: 4 experts { count: 6 ffn: 8 groups: 4 }", Code::kBadValue, "6:38",
     "groups 4 do not divide count 6", "1, 2, 3, 6"},
    {"heads: 4", "heads: 4 experts { count: 4 ffn: 8 groups: 2 group_choices: 3 }", Code::kBadValue, "6:48",
     "group_choices 3 of 2 groups", "1 to 2"},
    {"heads: 4", "heads: 4 experts { count: 4 ffn: 8 groups: 4 }", Code::kBadValue, "6:38",
     "choices 2 of the 1 experts in the groups of a token", "2 or more", "raise group_choices"},
    {"heads: 4", "heads: 4 experts { count: 4 ffn: 8 capacity { factor: 1 group: 5 } }", Code::kBadValue,
     "6:59", "groups of 5 tokens do not divide sequence 32", "1, 2, 4, 8, 16, 32"},
    {"heads: 4", "heads: 4 experts { count: 4 ffn: 8 capacity { factor: 0.5 drop: false } }", Code::kBadValue,
     "6:49", "none may be dropped", "1 or more"},
    {"heads: 4", "heads: 4 experts { count: 4 ffn: 8 capacity { group: 8 } }", Code::kMissingField, "6:38",
     "\"capacity\" has no \"factor\"", "above 0"},
    {"heads: 4", "heads: 4 name: \"mixtral\"", Code::kMissingField, "6:12", "\"model\" has no \"experts\"",
     "experts {"},
    {"heads: 4", "heads: 4 name: \"mixtral\" experts { count: 4 ffn: 8 shared: 1 }", Code::kBadValue, "6:28",
     "none shared", "count, choices, ffn"},
    {"heads: 4", "heads: 4 name: \"mixtral\" ffn: 9 experts { count: 4 ffn: 8 }", Code::kBadValue, "6:28",
     "but the experts'", "8", "leave ffn out"},
    // Latent attention.
    {"heads: 4", "heads: 4 name: \"deepseek_v3\"", Code::kMissingField, "6:12", "\"model\" has no \"latent\"",
     "latent {"},
    {"heads: 4", "heads: 4 latent { kv_rank: 8 nope_dim: 4 rope_dim: 4 value_dim: 4 }", Code::kBadValue,
     "6:12", "\"llama\" has no latent attention", "deepseek_v3"},
    {"heads: 4", "heads: 4 latent { nope_dim: 4 rope_dim: 4 value_dim: 4 }", Code::kMissingField, "6:12",
     "\"latent\" has no \"kv_rank\"", "1 to 1048576"},
    {"heads: 4\n  kv_heads: 2",
     "heads: 4 name: \"deepseek_v3\" latent { kv_rank: 8 nope_dim: 4 rope_dim: 3 value_dim: 4 }",
     Code::kBadValue, "6:64", "rope_dim 3 is odd", "even"},
    {"heads: 4\n  kv_heads: 2",
     "heads: 4 head_dim: 9 name: \"deepseek_v3\" latent { kv_rank: 8 nope_dim: 4 rope_dim: 4 value_dim: 4 }",
     Code::kBadValue, "6:12", "head_dim 9 is not nope_dim + rope_dim", "8", "leave head_dim out"},
    {"heads: 4", "heads: 4 name: \"deepseek_v3\" latent { kv_rank: 8 nope_dim: 4 rope_dim: 4 value_dim: 4 }",
     Code::kBadValue, "7:3", "each head has keys and values of its own", "4", "leave kv_heads out"},
    {"heads: 4", "heads: 4 mtp { loss_factor: 1 }", Code::kMissingField, "6:12", "\"mtp\" has no \"layers\"",
     "1 to 16"},
    // GPT-2.
    {"heads: 4", "heads: 4 positions: 64", Code::kBadValue, "6:12", "\"llama\" has no learned positions",
     "gpt2"},
    {"heads: 4", "heads: 4 name: \"gpt2\"", Code::kBadValue, "7:3",
     "each head has keys and values of its own", "4", "leave kv_heads out"},
    {"heads: 4\n  kv_heads: 2", "heads: 4 name: \"gpt2\" positions: 31", Code::kBadValue, "6:25",
     "positions 31 are fewer than sequence 32", "0, or 32 to 16777216"},
    {"heads: 4\n  kv_heads: 2", "heads: 4 name: \"gpt2\" head_dim: 8", Code::kBadValue, "6:25",
     "head_dim 8 x heads 4 is not hidden 64", "hidden / heads", "leave head_dim out"},
    {"heads: 4\n  kv_heads: 2", "heads: 4 name: \"gpt2\" rope_theta: 500", Code::kBadValue, "6:25",
     "none that turn", "10000", "leave rope_theta out"},
    {"heads: 4\n  kv_heads: 2", "heads: 4 name: \"gpt2\" rope_scaling { factor: 2 }", Code::kBadValue, "6:25",
     "none that turn", "another name", "leave rope_scaling out"},
    {"heads: 4", "heads: 4 rope_scaling { factor: 8 low_freq_factor: 4 }", Code::kBadValue, "6:12",
     "is not above low_freq_factor", "below high_freq_factor"},
    {"heads: 4", "heads: 4 rope_scaling { original_sequence: 64 }", Code::kMissingField, "6:12",
     "\"rope_scaling\" has no \"factor\"", "above 0"},
    {"heads: 4\n  kv_heads: 2", "heads: 4 name: \"gpt2\" experts { count: 4 ffn: 8 }", Code::kBadValue,
     "6:25", "has no experts", "another name"},
    {"heads: 4\n  kv_heads: 2", "heads: 4 name: \"gpt2\" mtp { layers: 1 }", Code::kBadValue, "6:25",
     "predicts one token", "another name"},
    // Mesh, presets, rules.
    {"devices: 4", "devices: 8", Code::kBadLayout, "12:3", "the mesh has 4 devices, the supernode 8",
     "dp 1 x tp 8, dp 2 x tp 4, dp 4 x tp 2, dp 8 x tp 1"},
    {"\"tp\" size: 2", "\"dp\" size: 2", Code::kBadLayout, "13:10", "two mesh axes are called \"dp\""},
    {"name: \"tp\"", "name: \"t p\"", Code::kBadValue, "13:10", "cannot be called \"t p\"", "a letter"},
    {"[\"dp\", \"tp\"]", "[\"dp\", \"ddp\"]", Code::kBadValue, "14:19", "\"ddp\" is unknown",
     "sequence parallel", "did you mean \"dp\"?"},
    {"[\"dp\", \"tp\"]", "\"fsdp\"", Code::kBadValue, "14:12", "\"fsdp\" is unknown", "\"zero1\""},
    {"[\"dp\", \"tp\"]", "[\"dp\", \"dp\"]", Code::kBadValue, "14:19", "given twice"},
    {"name: \"tp\"", "name: \"mp\"", Code::kBadLayout, "14:19", "\"tp\" needs a mesh axis \"tp\"", "dp, mp"},
    {"\"dp\" size: 2 }\n  mesh { name: \"tp\" size: 2 }\n  presets: [\"dp\", ",
     "\"mp\" size: 2 }\n  mesh { name: \"tp\" size: 2 }\n  presets: [\"zero1\", ", Code::kBadLayout, "14:13",
     "\"zero1\" needs a mesh axis \"cp\" or \"dp\" or \"ep\" or \"ring\"", "mp, tp", "name: \"dp\""},
    {"axes: \"tp\"", "axes: \"ep\"", Code::kBadLayout, "15:51", "the mesh has no axis \"ep\"", "dp, tp"},
    {"axes: \"tp\"", "axes: [\"tp\", \"tp\"]", Code::kBadLayout, "15:58", "uses axis \"tp\" twice"},
    {"} }\n}", "} dims { dim: \"heads\" axes: \"dp\" } }\n}", Code::kBadLayout, "15:65",
     "names dimension \"heads\" twice"},
    {kRuleDims, "layout: 'tp'", Code::kBadValue, "15:25", "\"layout\" is not understood at character 1",
     "\"None\"", "an entry for each dimension"},
    {kRuleDims, "layout: ''", Code::kBadValue, "15:25", "not understood at its end", "\"None\""},
    {kRuleDims, "layout: '(\"ep\")'", Code::kBadLayout, "15:25", "the mesh has no axis \"ep\"", "dp, tp"},
    {kRuleDims, "layout: '(\"tp\", (\"dp\", \"tp\"))'", Code::kBadLayout, "15:25", "uses axis \"tp\" twice",
     "each axis once"},
    {kRuleDims, "layout: 'Layout((2, 4), (\"dp\", \"tp\"))(\"tp\")'", Code::kBadLayout, "15:25",
     "is for Layout((2, 4), (\"dp\", \"tp\")), the job's mesh is Layout((2, 2), (\"dp\", \"tp\"))",
     "Layout((2, 2), (\"dp\", \"tp\"))", "parallel.mesh"},
    {kRuleDims, "layout: 'Layout((2, 2), (\"tp\", \"dp\"))(\"tp\")'", Code::kBadLayout, "15:25",
     "the job's mesh is", "(\"dp\", \"tp\")", "parallel.mesh"},
    {kRuleDims, "dims { dim: \"heads\" } layout: '(\"tp\")'", Code::kBadValue, "15:47",
     "both \"dims\" and \"layout\"", "one of them", "keep layout"},
    // Tiles.
    {kPresets, "tiles: 65", Code::kBadValue, "14:3", "\"tiles\" cannot be 65", "0 to 64"},
    {kPresets, "presets: [\"tp\", \"sp\", \"etp\", \"ep_tp\"]", Code::kBadLayout, "14:32",
     "\"ep_tp\" has whole experts on \"tp\"", "one of them", "remove the other"},
    // Pipeline.
    {kPresets, "pipeline { axis: \"pp\" }", Code::kBadLayout, "14:14", "the mesh has no axis \"pp\"",
     "dp, tp"},
    {kPresets, "presets: \"dp\" pipeline { axis: \"dp\" }", Code::kBadLayout, "14:28",
     "the preset \"dp\" splits tensors over the axis \"dp\"", "no preset and no rule", "axis of its own"},
    {kPresets, "pipeline { axis: \"tp\" }", Code::kBadLayout, "15:51",
     "the axis \"tp\" has the pipeline's stages", "another axis"},
    {kPresets, "pipeline { axis: \"dp\" chunks: 2 }", Code::kBadLayout, "14:25",
     "layers 2 cannot fill 4 stages", "chunks of 1"},
    {kPresets, "pipeline { axis: \"dp\" schedule: \"gpipe\" } paired_passes: true", Code::kBadValue, "14:45",
     "\"gpipe\" does no backward pass before the last forward pass", "\"1f1b\"", "leave paired_passes out"},
    {kPresets, "pipeline { axis: \"dp\" schedule: \"2f2b\" }", Code::kBadValue, "14:25",
     "\"2f2b\" is unknown", "\"zero_bubble\""},
    {kPresets, "pipeline { axis: \"dp\" schedule: \"interleaved\" chunks: 1 }", Code::kBadValue, "14:25",
     "an interleaved schedule of one stage", "2 or more"},
    {kPresets, "pipeline { axis: \"dp\" stages { device: 2 layers: 2 } }", Code::kBadLayout, "14:34",
     "a stage on device 2", "0 to 1"},
    {kPresets, "pipeline { axis: \"dp\" stages { device: 0 layers: 2 } }", Code::kBadLayout, "14:25",
     "device 1 of the axis \"dp\" has no stage", "each of 0 to 1"},
    {kPresets, "pipeline { axis: \"dp\" stages { device: 0 layers: 1 } stages { device: 1 layers: 2 } }",
     Code::kBadLayout, "14:25", "the stages have 3 layers, the model 2", "2"},
    {kPresets,
     "pipeline { axis: \"dp\" stages { device: 0 layers: 1 } stages { device: 1 layers: 0 } stages { device: "
     "0 "
     "layers: 1 } }",
     Code::kBadLayout, "14:75", "a stage without layers amid", "1 or more"},
    {kPresets,
     "pipeline { axis: \"dp\" chunks: 2 stages { device: 0 layers: 1 } stages { device: 1 layers: 1 } }",
     Code::kBadValue, "14:25", "chunks 2, and a device has 1 stage", "1", "leave chunks out"},
    // Batch.
    {"batch: 8", "batch: 7", Code::kBadValue, "20:3", "batch 7 cannot be cut for 2 devices along dp",
     "a multiple of 4", "1, 7"},
    {"micro_batches: 2", "micro_batches: 3", Code::kBadValue, "21:3", "micro_batches 3 cannot cut batch 8",
     "1, 2, 4", "a multiple of 6"},
    // Memory.
    {"name: \"t\"", "memory { policy: \"none\" tensors: \"weights\" }", Code::kBadValue, "1:25",
     "the policy \"none\" moves nothing", "with another policy", "leave tensors out"},
    {"name: \"t\"", "memory { tier: \"pool\" }", Code::kBadValue, "1:10", "the policy \"none\" moves nothing",
     "with another policy", "leave tier out"},
};

// The error that reading the text throws.
JobError error_of(const std::string& text) {
  try {
    parse_job(text, "job.textproto");
  } catch (const JobError& e) {
    return e;
  }
  ADD_FAILURE() << "accepted: " << text;
  return JobError({Error(Code::kInternal, "accepted")});
}

TEST(JobErrors, TheUnchangedJobIsGood) { EXPECT_NO_THROW(parse_job(kJobText, "job.textproto")); }

TEST(JobErrors, EachHasCodePlaceCauseLegalValuesAndFix) {
  for (const Bad& bad : kBad) {
    SCOPED_TRACE(bad.to);
    JobError error = error_of(with(bad.from, bad.to));
    std::string place = *bad.place == 0 ? "job.textproto" : std::string("job.textproto:") + bad.place;
    EXPECT_EQ(name(error.code()), name(bad.code));
    EXPECT_EQ(error.place(), place);
    EXPECT_THAT(error.cause(), HasSubstr(bad.cause));
    EXPECT_THAT(error.legal(), HasSubstr(bad.legal));
    EXPECT_THAT(error.remedy(), HasSubstr(bad.fix));
    EXPECT_EQ(exit_code(error.code()), ExitCode::kBadJob);
  }
}

TEST(JobErrors, AMeshHasNoMoreAxesThanAListMayName) {
  const std::string last = "mesh { name: \"tp\" size: 2 }";
  std::string axes = last;
  for (int i = 2; i < 32; ++i) axes += "\n  mesh { name: \"a" + std::to_string(i) + "\" size: 1 }";
  EXPECT_NO_THROW(parse_job(with(last.c_str(), axes.c_str()), "job.textproto"));
  axes += "\n  mesh { name: \"more\" size: 1 }";
  const JobError error = error_of(with(last.c_str(), axes.c_str()));
  EXPECT_EQ(name(error.code()), name(Code::kBadLayout));
  EXPECT_THAT(error.cause(), HasSubstr("the mesh has 33 axes"));
  EXPECT_EQ(error.legal(), "at most 32");
}

TEST(JobErrors, MessagesAreAsInTheGoldenFile) {
  std::string all;
  for (const Bad& bad : kBad) all += std::string(error_of(with(bad.from, bad.to)).what()) + "\n\n";
  const std::string golden = HYPERRUN_SOURCE_DIR "/tests/spec/golden/job_errors.txt";
  if (all == file_content(golden)) return;
  const std::string actual = ::testing::TempDir() + "job_errors." + std::to_string(getpid()) + ".txt";
  std::ofstream(actual, std::ios::binary) << all;
  FAIL() << "see what changed: diff " << golden << " " << actual;
}

TEST(JobErrors, AllAreReportedAtOnce) {
  JobError error = error_of(with("steps: 10", "steps: 0 beta1: 2 clip_norm: -1"));
  ASSERT_EQ(error.all().size(), 3u);
  EXPECT_EQ(error.all()[0].place(), "job.textproto:19:3");
  EXPECT_EQ(error.all()[1].place(), "job.textproto:19:12");
  for (const Error& one : error.all()) EXPECT_THAT(error.what(), HasSubstr(one.what()));
}

TEST(JobErrors, PairsAreOfTwoMicroBatches) {
  std::string text = with(kPresets, "paired_passes: true");
  EXPECT_NO_THROW(parse_job(text, "job.textproto"));
  text.replace(text.find("micro_batches: 2"), 16, "micro_batches: 1");
  const JobError error = error_of(text);
  EXPECT_EQ(error.place(), "job.textproto:14:3");
  EXPECT_THAT(error.what(), HasSubstr("a step of one micro-batch has no passes to pair"));
  EXPECT_THAT(error.legal(), HasSubstr("2 or more"));
}

// Behind the missing quote a block stays open, and the rest of the text seems to be in it.
TEST(JobErrors, ATextWithoutItsClosingQuoteIsOneError) {
  JobError error = error_of(with("data { corpus: \"/c.txt\" }", "data { corpus: \"/c.txt }"));
  ASSERT_EQ(error.all().size(), 1u) << error.what();
  EXPECT_THAT(error.what(), HasSubstr("job.textproto:17:"));
}

TEST(JobErrors, SeveralUnknownFieldsAreReportedAtOnce) {
  JobError error = error_of(with("steps: 10", "stepz: 10 foo { bar: 1 }"));
  ASSERT_EQ(error.all().size(), 2u);
  EXPECT_EQ(error.all()[1].place(), "job.textproto:19:13");
}

TEST(JobErrors, ALongListIsCut) {
  std::string many;
  for (int i = 0; i < 50; ++i) many += "foo: 1 ";
  JobError error = error_of(with("steps: 10", many));
  EXPECT_EQ(error.all().size(), 50u);
  EXPECT_THAT(error.what(), HasSubstr("and 30 more"));
}

TEST(JobErrors, BinaryJobsAreBlamedByFieldPath) {
  proto::Job message;
  message.mutable_supernode()->set_devices(4);
  message.mutable_training()->set_steps(-1);
  message.mutable_parallel()->add_mesh()->set_name("dp");
  JobError error = error_of(message.SerializeAsString());
  std::vector<std::string> places;
  for (const Error& one : error.all()) places.push_back(one.place());
  EXPECT_THAT(places, ::testing::IsSupersetOf({"job.textproto: supernode.hbm", "job.textproto: model",
                                               "job.textproto: parallel.mesh[0].size",
                                               "job.textproto: training.steps"}));
}

TEST(JobErrors, BinaryJobsWithUnknownNumbers) {
  proto::Job message;
  message.mutable_training()->set_steps(1);
  auto* training = message.mutable_training();
  training->GetReflection()->MutableUnknownFields(training)->AddVarint(99, 1);
  JobError error = error_of(message.SerializeAsString());
  EXPECT_EQ(error.code(), Code::kUnknownField);
  EXPECT_EQ(error.place(), "job.textproto: training");
  EXPECT_THAT(error.cause(), HasSubstr("no field number 99"));
}

TEST(JobErrors, BinaryJobsWithAWrongTypeOfValue) {
  proto::Job message;
  message.mutable_training()->set_batch(1);
  auto* training = message.mutable_training();
  training->GetReflection()->MutableUnknownFields(training)->AddFixed64(1, 1);
  JobError error = error_of(message.SerializeAsString());
  EXPECT_EQ(error.code(), Code::kBadValue);
  EXPECT_THAT(error.cause(), HasSubstr("\"steps\""));
}

TEST(JobErrors, NeitherTextNorBinary) {
  JobError error = error_of(std::string("PK\x03\x04 nonsense", 13));
  EXPECT_EQ(error.code(), Code::kSyntax);
  EXPECT_EQ(error.place(), "job.textproto");
  EXPECT_THAT(error.cause(), HasSubstr("neither a text job (control character at byte 2) nor a binary one"));
}

TEST(JobErrors, NestedTooDeep) {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "a{";
  EXPECT_NO_FATAL_FAILURE(error_of(deep));
}

}  // namespace
}  // namespace hyperrun
