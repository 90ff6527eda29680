#include "runtime/model/checkpoint/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/model/checkpoint/files.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

using nlohmann::json;

HfConfig example() {
  HfConfig config;
  config.model = {"llama", 4, 256, 8, 2, 32, 688, 4096, 512, 500000.0, 1e-5, true};
  config.dtype = DType::kBF16;
  config.ends_of_text = {{7}};
  return config;
}

TEST(HfConfig, RoundTrip) {
  const TemporaryDirectory dir;
  put_file(dir / "config.json", to_config_json(example()));
  EXPECT_EQ(read_config(dir.path()), example());
  EXPECT_EQ(read_config(dir / "config.json"), example());
}

// The rope scaling of Meta's Llama 3.1 and 3.2.
TEST(HfConfig, ReadsRopeScaling) {
  const TemporaryDirectory dir;
  json root = json::parse(to_config_json(example()));
  root["rope_scaling"] = {{"factor", 8.0},
                          {"low_freq_factor", 1.0},
                          {"high_freq_factor", 4.0},
                          {"original_max_position_embeddings", 8192},
                          {"rope_type", "llama3"}};
  put_file(dir / "config.json", root.dump());
  HfConfig config = read_config(dir.path());
  EXPECT_EQ(
      config.model.rope_scaling,
      (RopeScaling{.factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_sequence = 8192}));
  put_file(dir / "config.json", to_config_json(config));
  EXPECT_EQ(read_config(dir.path()), config);

  root["rope_scaling"] = {{"type", "linear"}, {"factor", 2.5}};
  put_file(dir / "config.json", root.dump());
  config = read_config(dir.path());
  EXPECT_EQ(config.model.rope_scaling, (RopeScaling{.type = "linear", .factor = 2.5}));
  put_file(dir / "config.json", to_config_json(config));
  EXPECT_EQ(read_config(dir.path()), config);

  root["rope_scaling"] = {{"rope_type", "llama3"}, {"factor", 8.0}};
  put_file(dir / "config.json", root.dump());
  EXPECT_ERROR(read_config(dir.path()), Code::kBadCheckpoint, "low_freq_factor", "missing");
}

TEST(HfConfig, TellsTheFamiliesApart) {
  const TemporaryDirectory dir;
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
  EXPECT_EQ(root["bos_token_id"], 7);
}

// A file from the time of Llama 2, with many fields missing.
TEST(HfConfig, FillsInDefaults) {
  const TemporaryDirectory dir;
  put_file(dir / "config.json", R"({"architectures":["LlamaForCausalLM"],"hidden_size":288,
    "intermediate_size":768,"num_attention_heads":6,"num_hidden_layers":6,"vocab_size":32000,
    "bos_token_id":1,"eos_token_id":2,"transformers_version":"4.28.0","pretraining_tp":1})");
  const HfConfig config = read_config(dir.path());
  EXPECT_EQ(config.model, (ModelSpec{"llama", 6, 288, 6, 6, 48, 768, 32000, 2048, 10000, 1e-6, false}));
  EXPECT_EQ(config.dtype, DType::kF32);
  EXPECT_EQ(config.ends_of_text, EndsOfText{{2}});
  EXPECT_EQ(config.begin_of_text, 1);
}

TEST(HfConfig, ReadsNewerRopeParametersAndDtype) {
  const TemporaryDirectory dir;
  json root = json::parse(to_config_json(example()));
  root.erase("rope_theta"), root.erase("rope_scaling"), root.erase("torch_dtype");
  root["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 123.0}};
  root["dtype"] = "bfloat16";
  put_file(dir / "config.json", root.dump());
  HfConfig expected = example();
  expected.model.rope_theta = 123;
  EXPECT_EQ(read_config(dir.path()), expected);
}

// Meta's Llama 3 has several ids that end a text. A single number is written back as a number.
TEST(HfConfig, EndsOfText) {
  const TemporaryDirectory dir;
  const std::pair<json, EndsOfText> kEnds[] = {{7, {{7}}}, {{7}, {{7}, true}}, {{5, 9, 7}, {{5, 9, 7}, true}},
                                               {0, {{0}}}, {4095, {{4095}}},   {nullptr, {}}};
  for (const auto& [written, read] : kEnds) {
    SCOPED_TRACE(written.dump());
    json root = json::parse(to_config_json(example()));
    root["eos_token_id"] = written;
    root["bos_token_id"] = 3;
    put_file(dir / "config.json", root.dump());
    const HfConfig config = read_config(dir.path());
    EXPECT_EQ(config.ends_of_text, read);
    EXPECT_EQ(config.begin_of_text, 3);
    const json back = json::parse(to_config_json(config));
    EXPECT_EQ(back["eos_token_id"], written);
    EXPECT_EQ(back["bos_token_id"], 3);
  }
}

// A file with eos ids but no bos id begins texts with the first eos id.
TEST(HfConfig, BeginsWithTheFirstEnd) {
  const TemporaryDirectory dir;
  json root = json::parse(to_config_json(example()));
  root["eos_token_id"] = {5, 9};
  root["bos_token_id"] = 5;
  put_file(dir / "config.json", root.dump());
  EXPECT_EQ(read_config(dir.path()).begin_of_text, std::nullopt);
  EXPECT_EQ(json::parse(to_config_json(read_config(dir.path())))["bos_token_id"], 5);
}

TEST(HfConfig, EndsThatAreNoTokens) {
  const TemporaryDirectory dir;
  const std::tuple<json, std::string, std::string> kBad[] = {{"2", "eos_token_id", "\"2\""},
                                                             {1.5, "eos_token_id", "1.5"},
                                                             {true, "eos_token_id", "true"},
                                                             {4096, "eos_token_id", "4096"},
                                                             {-1, "eos_token_id", "-1"},
                                                             {json::array(), "eos_token_id", "[]"},
                                                             {{{"id", 2}}, "eos_token_id", "{"},
                                                             {{7, "x"}, "eos_token_id[1]", "\"x\""},
                                                             {{7, 8, 4096}, "eos_token_id[2]", "4096"},
                                                             {{7, nullptr}, "eos_token_id[1]", "null"},
                                                             {{{7}, 8}, "eos_token_id[0]", "[7]"}};
  for (const auto& [ends, field, cause] : kBad) {
    SCOPED_TRACE(ends.dump());
    json root = json::parse(to_config_json(example()));
    root["eos_token_id"] = ends;
    put_file(dir / "config.json", root.dump());
    const Error error = error_of([&] { read_config(dir.path()); });
    EXPECT_EQ(error.code(), Code::kBadCheckpoint);
    EXPECT_EQ(error.place(), (dir / "config.json").string() + ": " + field);
    EXPECT_THAT(error.cause(), ::testing::HasSubstr(cause + (cause == "{" ? "" : " is not a token")));
    EXPECT_EQ(error.legal(), "0 to 4095, a list of such, or null");
    EXPECT_NE(error.remedy(), "");
  }
}

struct BadField {
  const char* field;
  json value;
  const char* cause;
};

TEST(HfConfig, EachUnsupportedFieldIsNamed) {
  const BadField kFields[] = {
      {"model_type", "falcon", "falcon"},
      {"architectures", {"MixtralForCausalLM"}, "Mixtral"},
      {"architectures", {"A", "B"}, "not supported"},
      {"hidden_act", "gelu", "gelu"},
      {"attention_bias", 1, "true or false"},
      {"mlp_bias", "no", "true or false"},
      {"attention_dropout", 0.1, "dropout"},
      {"partial_rotary_factor", 0.5, "partial"},
      {"rope_scaling", {{"rope_type", "proportional"}, {"factor", 8.0}}, "proportional"},
      {"rope_scaling", {{"rope_type", "yarn"}}, "missing"},
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
      {"torch_dtype", "float64", "float64"},
  };
  const TemporaryDirectory dir;
  for (const BadField& bad : kFields) {
    SCOPED_TRACE(std::string(bad.field) + " " + bad.value.dump());
    json root = json::parse(to_config_json(example()));
    root[bad.field] = bad.value;
    put_file(dir / "config.json", root.dump());
    EXPECT_ERROR(read_config(dir.path()), Code::kBadCheckpoint, std::string("config.json: ") + bad.field,
                 bad.cause);
  }
}

// Sizes beyond the limits of a job are refused here, before anything is allocated.
TEST(HfConfig, SizesAreThoseOfAJob) {
  const std::pair<const char*, std::int64_t> kSizes[] = {
      {"num_hidden_layers", 4096},          {"hidden_size", 1 << 20}, {"num_attention_heads", 4096},
      {"num_key_value_heads", 4096},        {"head_dim", 1 << 16},    {"intermediate_size", 1 << 22},
      {"max_position_embeddings", 1 << 24}, {"vocab_size", 1 << 22}};
  const TemporaryDirectory dir;
  for (const auto& [field, most] : kSizes)
    for (const std::int64_t size : {most + 1, std::int64_t{1'000'000'000}, std::int64_t{1} << 40}) {
      SCOPED_TRACE(std::string(field) + " " + std::to_string(size));
      json root = json::parse(to_config_json(example()));
      root[field] = size;
      put_file(dir / "config.json", root.dump());
      const Error error = error_of([&] { read_config(dir.path()); });
      EXPECT_EQ(error.code(), Code::kBadCheckpoint);
      EXPECT_EQ(error.place(), (dir / "config.json").string() + ": " + field);
      EXPECT_EQ(error.legal(), "1 to " + std::to_string(most));
    }
}

TEST(HfConfig, Missing) {
  const TemporaryDirectory dir;
  EXPECT_ERROR(read_config(dir.path()), Code::kMissingFile, "config.json", "no such file");
}

ModelSpec mixture(const char* name) {
  return {.name = name,
          .layers = 3,
          .hidden = 16,
          .heads = 2,
          .kv_heads = 2,
          .head_dim = 8,
          .ffn = 32,
          .vocab = 300,
          .sequence = 16,
          .experts = {.count = 4, .choices = 3, .ffn = 32}};
}

TEST(HfConfig, Mixtral) {
  const TemporaryDirectory dir;
  HfConfig config;
  config.model = mixture("mixtral");
  json root = json::parse(to_config_json(config));
  EXPECT_EQ(root["model_type"], "mixtral");
  EXPECT_EQ(root["architectures"], json::array({"MixtralForCausalLM"}));
  EXPECT_EQ(root["num_local_experts"], 4);
  EXPECT_EQ(root["num_experts_per_tok"], 3);
  EXPECT_EQ(root["intermediate_size"], 32);
  put_file(dir / "config.json", root.dump());
  EXPECT_EQ(read_config(dir.path()), config);
  root["sliding_window"] = 4096;
  put_file(dir / "config.json", root.dump());
  EXPECT_EQ(read_config(dir.path()).model.window, 4096);
}

std::vector<int> windows_of(const ModelSpec& m) {
  std::vector<int> list;
  for (int l = 0; l < m.layers; ++l) list.push_back(m.window_of(l));
  return list;
}

TEST(HfConfig, Windows) {
  const TemporaryDirectory dir;
  const auto read = [&](const char* family, const json& fields) {
    HfConfig config;
    config.model = mixture(family);
    config.model.experts = {};
    json root = json::parse(to_config_json(config));
    root.erase("sliding_window");
    root.update(fields);
    put_file(dir / "config.json", root.dump());
    const HfConfig found = read_config(dir.path());
    put_file(dir / "config.json", to_config_json(found));
    EXPECT_EQ(read_config(dir.path()), found) << fields.dump();
    return windows_of(found.model);
  };
  const std::vector<int> none{0, 0, 0}, all{4, 4, 4}, last{0, 0, 4}, ends{4, 0, 4};
  EXPECT_EQ(read("mistral", {{"sliding_window", 4}}), all);
  EXPECT_EQ(read("mistral", {{"sliding_window", nullptr}}), none);
  EXPECT_EQ(read("mistral", json::object()), (std::vector<int>{4096, 4096, 4096})) << "as the class has it";
  EXPECT_EQ(read("phi3", {{"sliding_window", 4}}), all);
  EXPECT_EQ(read("phi3", json::object()), none);
  const json on{{"use_sliding_window", true}, {"sliding_window", 4}, {"max_window_layers", 0}};
  EXPECT_EQ(read("qwen3", on), all);
  json some = on;
  some["max_window_layers"] = 2;
  EXPECT_EQ(read("qwen2", some), last);
  some["max_window_layers"] = 3;
  EXPECT_EQ(read("qwen2", some), none);
  some["layer_types"] = {"sliding_attention", "full_attention", "sliding_attention"};
  EXPECT_EQ(read("qwen2", some), ends) << "the list has priority";
  some["use_sliding_window"] = false, some.erase("layer_types");
  EXPECT_EQ(read("qwen2", some), none);
  for (const auto& [field, value] :
       std::map<std::string, json>{{"sliding_window", 0}, {"layer_types", {"chunked_attention", "", ""}}}) {
    json bad = on;
    bad[field] = value;
    EXPECT_THROW(read("qwen3", bad), Error) << field;
  }
}

TEST(HfConfig, LayersWithoutExperts) {
  const TemporaryDirectory dir;
  HfConfig config;
  config.model = mixture("qwen3_moe");
  config.model.layers = 7;
  json root = json::parse(to_config_json(config));
  root["decoder_sparse_step"] = 2, root["mlp_only_layers"] = {3};
  put_file(dir / "config.json", root.dump());
  const HfConfig read = read_config(dir.path());
  std::vector<int> with;
  for (int l = 0; l < 7; ++l)
    if (read.model.experts.in_layer(l)) with.push_back(l);
  EXPECT_EQ(with, (std::vector<int>{1, 5}));
  put_file(dir / "config.json", to_config_json(read));
  for (int l = 0; l < 7; ++l)
    EXPECT_EQ(read_config(dir.path()).model.experts.in_layer(l), read.model.experts.in_layer(l)) << l;
}

// Fields, names and values are those of deepseek-ai/DeepSeek-V3, at a small size and without its
// rope_scaling.
TEST(HfConfig, DeepSeek) {
  const TemporaryDirectory dir;
  const json root = {{"architectures", {"DeepseekV3ForCausalLM"}},
                     {"attention_bias", false},
                     {"attention_dropout", 0.0},
                     {"bos_token_id", 0},
                     {"eos_token_id", 1},
                     {"ep_size", 1},
                     {"first_k_dense_replace", 1},
                     {"hidden_act", "silu"},
                     {"hidden_size", 16},
                     {"intermediate_size", 48},
                     {"kv_lora_rank", 8},
                     {"max_position_embeddings", 64},
                     {"model_type", "deepseek_v3"},
                     {"moe_intermediate_size", 12},
                     {"moe_layer_freq", 1},
                     {"n_group", 4},
                     {"n_routed_experts", 8},
                     {"n_shared_experts", 1},
                     {"norm_topk_prob", true},
                     {"num_attention_heads", 2},
                     {"num_experts_per_tok", 3},
                     {"num_hidden_layers", 5},
                     {"num_key_value_heads", 2},
                     {"num_nextn_predict_layers", 1},
                     {"q_lora_rank", 10},
                     {"qk_nope_head_dim", 6},
                     {"qk_rope_head_dim", 4},
                     {"rms_norm_eps", 1e-6},
                     {"rope_theta", 10000},
                     {"routed_scaling_factor", 2.5},
                     {"scoring_func", "sigmoid"},
                     {"tie_word_embeddings", false},
                     {"topk_group", 2},
                     {"topk_method", "noaux_tc"},
                     {"torch_dtype", "bfloat16"},
                     {"v_head_dim", 5},
                     {"vocab_size", 300}};
  HfConfig expected;
  expected.model = {.name = "deepseek_v3",
                    .layers = 5,
                    .hidden = 16,
                    .heads = 2,
                    .kv_heads = 2,
                    .head_dim = 10,
                    .ffn = 48,
                    .vocab = 300,
                    .sequence = 64,
                    .norm_eps = 1e-6};
  expected.model.experts = {.count = 8,
                            .choices = 3,
                            .ffn = 12,
                            .shared = 1,
                            .dense_layers = 1,
                            .scoring = "sigmoid",
                            .scale = 2.5,
                            .groups = 4,
                            .group_choices = 2};
  expected.model.latent = {.q_rank = 10, .kv_rank = 8, .nope_dim = 6, .rope_dim = 4, .value_dim = 5};
  expected.model.mtp.layers = 1;
  expected.dtype = DType::kBF16;
  expected.ends_of_text = {{1}};
  expected.begin_of_text = 0;
  put_file(dir / "config.json", root.dump());
  EXPECT_EQ(read_config(dir.path()), expected);
  put_file(dir / "config.json", to_config_json(expected));
  EXPECT_EQ(read_config(dir.path()), expected);
  const json written = json::parse(to_config_json(expected));
  for (const auto& [field, value] : root.items())
    if (field != "ep_size" && field != "bos_token_id") {
      EXPECT_EQ(written[field], value) << field;
    }
  for (const auto& [field, value] : std::map<std::string, json>{{"topk_method", "greedy"},
                                                                {"scoring_func", "tanh"},
                                                                {"n_group", 3},
                                                                {"num_key_value_heads", 1},
                                                                {"rope_interleave", false},
                                                                {"kv_lora_rank", 0},
                                                                {"rope_scaling", {{"type", "yarn"}}},
                                                                {"moe_layer_freq", 2}}) {
    json bad = root;
    bad[field] = value;
    put_file(dir / "config.json", bad.dump());
    EXPECT_ERROR(read_config(dir.path()), Code::kBadCheckpoint, "config.json: " + field, "");
  }
}

// Fields, names and values are those of openai-community/gpt2, at a small size.
TEST(HfConfig, Gpt2) {
  const TemporaryDirectory dir;
  const json root = {{"activation_function", "gelu_new"},
                     {"architectures", {"GPT2LMHeadModel"}},
                     {"attn_pdrop", 0.1},
                     {"bos_token_id", 256},
                     {"embd_pdrop", 0.1},
                     {"eos_token_id", 256},
                     {"initializer_range", 0.02},
                     {"layer_norm_epsilon", 1e-05},
                     {"model_type", "gpt2"},
                     {"n_ctx", 64},
                     {"n_embd", 18},
                     {"n_head", 6},
                     {"n_layer", 5},
                     {"n_positions", 64},
                     {"resid_pdrop", 0.1},
                     {"summary_type", "cls_index"},
                     {"vocab_size", 300}};
  HfConfig expected;
  expected.model = {.name = "gpt2",
                    .layers = 5,
                    .hidden = 18,
                    .heads = 6,
                    .kv_heads = 6,
                    .head_dim = 3,
                    .ffn = 72,
                    .vocab = 300,
                    .sequence = 64,
                    .norm_eps = 1e-5,
                    .tied_head = true};
  expected.ends_of_text = {{256}};
  put_file(dir / "config.json", root.dump());
  EXPECT_EQ(read_config(dir.path()), expected);
  put_file(dir / "config.json", to_config_json(expected));
  EXPECT_EQ(read_config(dir.path()), expected);
  json written = json::parse(to_config_json(expected));
  EXPECT_EQ(written["architectures"], root["architectures"]);
  EXPECT_EQ(written["n_inner"], 72);
  for (const char* dropout : {"attn_pdrop", "embd_pdrop", "resid_pdrop"}) EXPECT_EQ(written[dropout], 0.0);

  expected.model.positions = 80;  // the file has the table's size
  expected.model.tied_head = false;
  expected.model.ffn = 50;
  put_file(dir / "config.json", to_config_json(expected));
  const ModelSpec model = read_config(dir.path()).model;
  EXPECT_EQ(model.sequence, 80);
  EXPECT_EQ(model.ffn, 50);
  EXPECT_FALSE(model.tied_head);

  for (const auto& [field, value] : std::map<std::string, json>{{"activation_function", "gelu"},
                                                                {"n_head", 4},
                                                                {"n_positions", 0},
                                                                {"n_layer", nullptr},
                                                                {"layer_norm_epsilon", 0},
                                                                {"scale_attn_weights", false},
                                                                {"scale_attn_by_inverse_layer_idx", true},
                                                                {"add_cross_attention", true}}) {
    json bad = root;
    bad[field] = value;
    put_file(dir / "config.json", bad.dump());
    EXPECT_ERROR(read_config(dir.path()), Code::kBadCheckpoint, "config.json: " + field, "");
  }
}

TEST(HfConfig, ExpertsComeBack) {
  TemporaryDirectory dir;
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
