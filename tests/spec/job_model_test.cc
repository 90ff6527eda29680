// The model of a job: families and what goes with them, and a config.json in place of fields.
#include <gmock/gmock.h>

#include <filesystem>

#include "runtime/spec/job_reader.h"
#include "runtime/spec/job_writer.h"
#include "tests/spec/job_texts.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kModel = R"(  layers: 2
  hidden: 64
  heads: 4
  kv_heads: 2
  vocab: 512
  sequence: 32
)";

Job read(const std::string& fields) { return parse_job(with(kModel, fields), "j").job; }
Job read_beside(const std::string& fields) { return read(std::string(kModel) + fields); }

TEST(JobModel, FamiliesAndTheirDefaults) {
  EXPECT_EQ(read_beside(R"(name: "mistral" window: 8)").model.window, 8);
  const ModelSpec v2 = read(R"(layers: 2 hidden: 64 heads: 4 vocab: 512 sequence: 32 name: "deepseek_v2"
    latent { kv_rank: 8 nope_dim: 8 rope_dim: 4 value_dim: 8 } experts { count: 4 ffn: 8 })")
                           .model;
  EXPECT_FALSE(v2.experts.normalize);
  EXPECT_EQ(v2.experts.group_best, 1);
  EXPECT_TRUE(read_beside(R"(name: "qwen3_moe" experts { count: 4 ffn: 8 })").model.experts.normalize);
  EXPECT_THAT(error_of([] { read_beside(R"(name: "falcon")"); }).legal(),
              HasSubstr("\"mistral\"      llama with a sliding window"));
}

TEST(JobModel, LayersWithAWindow) {
  const ModelSpec m = read(R"(layers: 6 hidden: 64 heads: 4 vocab: 512 sequence: 32 name: "qwen3" window: 4
    window_layers { first_layer: 1 every: 2 } window_layers { first_layer: 4 last_layer: 4 })")
                          .model;
  EXPECT_EQ(m.window_layers, (std::vector<LayerRange>{{1, 5, 2}, {4, 4}}));
  const int windows[] = {0, 4, 0, 4, 4, 4};
  for (int l = 0; l < 6; ++l) EXPECT_EQ(m.window_of(l), windows[l]) << l;
}

TEST(JobModel, ScalingsHaveATypeByTheirFields) {
  EXPECT_EQ(read_beside("rope_scaling { factor: 4 }").model.rope_scaling.type, "linear");
  EXPECT_EQ(read_beside("rope_scaling { factor: 4 original_sequence: 8 }").model.rope_scaling.type, "llama3");
  EXPECT_EQ(read_beside(R"(rope_scaling { factor: 4 original_sequence: 8 rope_type: "yarn" })")
                .model.rope_scaling.type,
            "yarn");
}

TEST(JobModel, WhatDoesNotGoWithAFamily) {
  const std::tuple<const char*, const char*, const char*> kBad[] = {
      {"window: 4", "no sliding window", "\"mistral\" or \"mixtral\""},
      {R"(name: "mistral" attention_bias: true)", "no biases in attention", "\"llama\" or \"qwen3\""},
      {R"(name: "qwen2" attention_bias: true)", "those on q, k and v it always has", "attention_bias"},
      {R"(name: "qwen3" mlp_bias: true)", "no biases in its SwiGLU", "\"llama\""},
      {"rotary_dim: 8", "part of a head", "\"phi3\""},
      {"positions: 64", "no learned positions", "\"gpt2\""},
      {R"(name: "phi3" rotary_dim: 7)", "rotary_dim 7 of head_dim 16", "even numbers up to 16"},
      {R"(name: "qwen3" window_layers { })", "\"window_layers\" without a \"window\"", "a window"},
      {R"(name: "qwen3" window: 4 window_layers { first_layer: 2 })", "no layers 2 to 1", "0 to 1"},
      {R"(name: "qwen3_moe")", "has experts", "experts"},
      {R"(name: "qwen3_moe" experts { count: 4 ffn: 8 shared: 1 })", "none shared", "norm"},
      {R"(rope_scaling { factor: 4 rope_type: "yarn" })", "on which lengths", "original_sequence"},
      {R"(rope_scaling { factor: 4 rope_type: "yarn" original_sequence: 8 beta_fast: 1 })", "beta_fast",
       "32"},
      {R"(rope_scaling { factor: 4 rope_type: "longrope" original_sequence: 8 short_factor: [1, 2] })",
       "2 numbers in \"short_factor\", and \"longrope\" has one for each of 8 pairs", "8 numbers"},
      {R"(rope_scaling { factor: 4 rope_type: "linear" long_factor: 1 })", "\"linear\" has none",
       "0 numbers"},
      {R"(rope_scaling { factor: 4 rope_type: "ntk" })", "unknown", "dynamic"},
  };
  for (const auto& [fields, cause, legal] : kBad) {
    SCOPED_TRACE(fields);
    const Error error = error_of([&, fields = fields] { read_beside(fields); });
    EXPECT_THAT(error.cause(), HasSubstr(cause));
    EXPECT_THAT(error.legal(), HasSubstr(legal));
    EXPECT_THAT(error.place(), HasSubstr("j:"));
  }
}

TEST(JobModel, IsWrittenInFull) {
  const Job job = read_beside(R"(name: "phi3" window: 8 rotary_dim: 8
    rope_scaling { factor: 4 rope_type: "longrope" original_sequence: 8 short_factor: [1, 2, 3, 4] long_factor: [2, 3, 4, 5] })");
  for (const std::string& text : {to_textproto(job), to_binary(job), to_line(job)})
    EXPECT_EQ(parse_job(text, "j").job.model, job.model) << text;
}

class JobModelFrom : public ::testing::Test {
 protected:
  JobModelFrom() {
    put_file(dir_ / "config.json", R"({
  "model_type": "qwen3",
  "hidden_size": 64,
  "intermediate_size": 96,
  "num_hidden_layers": 4,
  "num_attention_heads": 4,
  "num_key_value_heads": 2,
  "head_dim": 16,
  "vocab_size": 512,
  "max_position_embeddings": 4096,
  "rms_norm_eps": 1e-06,
  "rope_theta": 1000000.0,
  "use_sliding_window": true,
  "sliding_window": 8,
  "max_window_layers": 2
})");
  }
  Job read(const std::string& model) const {
    return parse_job(with(kModel, model), (dir_ / "job.textproto").string()).job;
  }
  TemporaryDirectory dir_;
};

TEST_F(JobModelFrom, TakesWhatTheFileSays) {
  const ModelSpec expected{.name = "qwen3",
                           .layers = 4,
                           .hidden = 64,
                           .heads = 4,
                           .kv_heads = 2,
                           .head_dim = 16,
                           .ffn = 96,
                           .vocab = 512,
                           .sequence = 32,
                           .rope_theta = 1e6,
                           .norm_eps = 1e-6,
                           .window = 8,
                           .window_layers = {{2, 3}}};
  EXPECT_EQ(read(R"(from: "config.json" sequence: 32)").model, expected);
  EXPECT_EQ(read(R"(from: "." sequence: 32)").model, expected) << "a folder";
  EXPECT_EQ(read("from: \"" + dir_.path().string() + "\" sequence: 32").model, expected) << "absolute";
}

TEST_F(JobModelFrom, OtherFieldsReplaceTheFiles) {
  const ModelSpec m = read(R"(from: "config.json" sequence: 32 layers: 3 norm_eps: 1e-5 tied_head: true
    rope_scaling { factor: 2 })")
                          .model;
  EXPECT_EQ(m.layers, 3);
  EXPECT_EQ(m.norm_eps, 1e-5);
  EXPECT_TRUE(m.tied_head);
  EXPECT_EQ(m.rope_scaling.type, "linear");
  EXPECT_EQ(m.window_layers, (std::vector<LayerRange>{{2, 2}}));
  EXPECT_EQ(read(R"(from: "config.json" sequence: 32 layers: 2)").model.window, 0) << "no layer is left";
  EXPECT_EQ(read(R"(from: "config.json" sequence: 32 window: 0)").model.window_layers.size(), 0U);
  EXPECT_EQ(read(R"(from: "config.json" sequence: 32 window_layers { last_layer: 1 })").model.window_layers,
            (std::vector<LayerRange>{{0, 1}}));
}

TEST_F(JobModelFrom, AResolvedJobDoesNotNeedTheFile) {
  const Job job = read(R"(from: "config.json" sequence: 32)");
  std::filesystem::remove(dir_ / "config.json");
  for (const std::string& text : {to_textproto(job), to_binary(job), to_line(job)}) {
    EXPECT_THAT(text, ::testing::Not(HasSubstr("from")));
    EXPECT_EQ(parse_job(text, "elsewhere").job.model, job.model) << text;
  }
}

TEST_F(JobModelFrom, ErrorsHaveThePlaceInTheFile) {
  const Error error = error_of([&] { read(R"(from: "config.json" sequence: 32 name: "llama")"); });
  EXPECT_THAT(error.cause(), HasSubstr("no sliding window"));
  EXPECT_EQ(error.place(), (dir_ / "config.json").string() + ":14:3");
  put_file(dir_ / "config.json", R"({"model_type": "falcon"})");
  EXPECT_EQ(error_of([&] { read(R"(from: "config.json" sequence: 32)"); }).place(),
            (dir_ / "config.json").string() + ": model_type");
}

TEST_F(JobModelFrom, NeedsASequenceAndAFile) {
  const Error error = error_of([&] { read(R"(from: "config.json")"); });
  EXPECT_EQ(error.code(), Code::kMissingField);
  EXPECT_THAT(error.cause(), HasSubstr("no \"sequence\""));
  EXPECT_THAT(error.legal(), HasSubstr("the model takes up to 4096"));
  const Error missing = error_of([&] { read(R"(from: "confg.json" sequence: 32)"); });
  EXPECT_EQ(missing.code(), Code::kMissingFile);
  EXPECT_THAT(missing.place(), HasSubstr("job.textproto:4:"));
}

TEST(JobModel, ThePlannerTakesLayersThatAreAlike) {
  const auto refusal = [](const std::string& fields) {
    return error_of([&] {
      refuse_uneven_layers(parse_job(with(kModel, std::string(kModel) + fields), "j", JobUse::kToBePlanned));
    });
  };
  EXPECT_THAT(refusal(R"(name: "qwen3" window: 4 window_layers { first_layer: 1 })").cause(),
              HasSubstr("some layers have a window"));
  EXPECT_THAT(refusal(R"(experts { count: 4 ffn: 8 dense { first_layer: 1 } })").cause(),
              HasSubstr("layers without experts"));
  EXPECT_NO_THROW(refuse_uneven_layers(parse_job(
      with(kModel, std::string(kModel) + R"(name: "qwen3" window: 4)"), "j", JobUse::kToBePlanned)));
}

}  // namespace
}  // namespace hyperrun
