#include "runtime/model/checkpoint/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/model/checkpoint/files.h"
#include "tests/model/checkpoint/temp_dir.h"

namespace hyperrun {
namespace {

using nlohmann::json;

HfConfig example() {
  HfConfig config;
  config.model = {"llama", 4, 256, 8, 2, 32, 688, 4096, 512, 500000.0, 1e-5, true};
  config.dtype = DType::kBF16;
  config.end_of_text = 7;
  return config;
}

TEST(HfConfig, RoundTrip) {
  const TempDir dir;
  put_file(dir / "config.json", to_config_json(example()));
  EXPECT_EQ(read_config(dir.path()), example());
  EXPECT_EQ(read_config(dir / "config.json"), example());
}

TEST(HfConfig, TellsTheFamiliesApart) {
  const TempDir dir;
  HfConfig config = example();
  config.model.name = "qwen3";
  put_file(dir / "config.json", to_config_json(config));
  EXPECT_EQ(read_config(dir.path()), config);
  json root = json::parse(to_config_json(config));
  EXPECT_EQ(root["architectures"], json::array({"Qwen3ForCausalLM"}));
  root["architectures"] = {"LlamaForCausalLM"};
  put_file(dir / "config.json", root.dump());
  EXPECT_THROW(read_config(dir.path()), Error) << "a family and another's architecture";
}

TEST(HfConfig, WritesTheFieldsThatTransformersReads) {
  const json root = json::parse(to_config_json(example()));
  EXPECT_EQ(root["architectures"], json::array({"LlamaForCausalLM"}));
  EXPECT_EQ(root["model_type"], "llama");
  EXPECT_EQ(root["hidden_size"], 256);
  EXPECT_EQ(root["num_key_value_heads"], 2);
  EXPECT_EQ(root["rope_scaling"], nullptr);
  EXPECT_EQ(root["torch_dtype"], "bfloat16");
  EXPECT_EQ(root["tie_word_embeddings"], true);
  EXPECT_EQ(root["eos_token_id"], 7);
}

// A file of Llama 2's time: defaults for what it does not say.
TEST(HfConfig, FillsInDefaults) {
  const TempDir dir;
  put_file(dir / "config.json", R"({"architectures":["LlamaForCausalLM"],"hidden_size":288,
    "intermediate_size":768,"num_attention_heads":6,"num_hidden_layers":6,"vocab_size":32000,
    "bos_token_id":1,"eos_token_id":2,"transformers_version":"4.28.0","pretraining_tp":1})");
  const HfConfig config = read_config(dir.path());
  EXPECT_EQ(config.model, (ModelSpec{"llama", 6, 288, 6, 6, 48, 768, 32000, 2048, 10000, 1e-6, false}));
  EXPECT_EQ(config.dtype, DType::kF32);
  EXPECT_EQ(config.end_of_text, 2);
}

TEST(HfConfig, ReadsNewerRopeParametersAndDtype) {
  const TempDir dir;
  json root = json::parse(to_config_json(example()));
  root.erase("rope_theta"), root.erase("rope_scaling"), root.erase("torch_dtype");
  root["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 123.0}};
  root["dtype"] = "bfloat16";
  root["eos_token_id"] = {7, 8};
  put_file(dir / "config.json", root.dump());
  HfConfig expected = example();
  expected.model.rope_theta = 123;
  EXPECT_EQ(read_config(dir.path()), expected);
}

struct BadField {
  const char* field;
  json value;
  const char* cause;
};

TEST(HfConfig, EachUnsupportedFieldIsNamed) {
  const BadField kFields[] = {
      {"model_type", "mistral", "mistral"},
      {"architectures", {"MixtralForCausalLM"}, "Mixtral"},
      {"architectures", {"A", "B"}, "not supported"},
      {"hidden_act", "gelu", "gelu"},
      {"attention_bias", true, "not supported"},
      {"mlp_bias", true, "not supported"},
      {"mlp_bias", "no", "true or false"},
      {"attention_dropout", 0.1, "dropout"},
      {"partial_rotary_factor", 0.5, "partial"},
      {"rope_scaling", {{"rope_type", "llama3"}, {"factor", 8.0}}, "llama3"},
      {"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}, "linear"},
      {"rope_scaling", 3, "JSON object"},
      {"rope_theta", 0, "positive"},
      {"rms_norm_eps", "x", "number"},
      {"hidden_size", nullptr, "missing"},
      {"hidden_size", 0, "is 0"},
      {"hidden_size", -4, "is -4"},
      {"hidden_size", 1.5, "integer"},
      {"hidden_size", 18446744073709551615u, "integer"},
      {"vocab_size", 3000000000, "is 3000000000"},
      {"num_key_value_heads", 3, "does not divide"},
      {"head_dim", 31, "even"},
      {"torch_dtype", "float16", "float16"},
      {"eos_token_id", 4096, "not a token"},
      {"eos_token_id", -1, "not a token"},
  };
  const TempDir dir;
  for (const BadField& bad : kFields) {
    SCOPED_TRACE(std::string(bad.field) + " " + bad.value.dump());
    json root = json::parse(to_config_json(example()));
    root[bad.field] = bad.value;
    put_file(dir / "config.json", root.dump());
    EXPECT_ERROR(read_config(dir.path()), Code::kBadCheckpoint, std::string("config.json: ") + bad.field,
                 bad.cause);
  }
}

TEST(HfConfig, Missing) {
  const TempDir dir;
  EXPECT_ERROR(read_config(dir.path()), Code::kMissingFile, "config.json", "no such file");
}

TEST(HfConfig, ExpertsComeBack) {
  TempDir dir;
  HfConfig config;
  config.model = {.layers = 3,
                  .hidden = 16,
                  .heads = 2,
                  .kv_heads = 2,
                  .head_dim = 8,
                  .ffn = 32,
                  .vocab = 300,
                  .sequence = 16};
  config.model.experts = {.count = 4,
                          .choices = 3,
                          .ffn = 8,
                          .shared = 1,
                          .dense_layers = 1,
                          .scoring = "sigmoid",
                          .normalize = false,
                          .scale = 2.5};
  const auto path = dir / "config.json";
  std::ofstream(path) << to_config_json(config);
  EXPECT_EQ(read_config(path).model, config.model);
}

}  // namespace
}  // namespace hyperrun
