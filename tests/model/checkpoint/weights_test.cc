// What published checkpoints have that ours have not: it is read, or refused with its name.
#include "runtime/model/checkpoint/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/model/checkpoint/numbers.h"
#include "runtime/model/checkpoint/tensor_names.h"
#include "tests/model/checkpoint/published.h"
#include "tests/support/errors.h"

namespace hyperrun::testing {
namespace {

using ::testing::HasSubstr;
using Shape = std::vector<std::int64_t>;

const std::vector<WantedTensor> kTied{{"model.embed_tokens.weight", {4, 2}}, {"model.norm.weight", {2}}};

class Weights : public ::testing::Test {
 protected:
  void put(const std::vector<Published>& tensors) { publish(dir_ / "model.safetensors", tensors); }
  void check(const std::vector<WantedTensor>& wanted) { WeightsReader(dir_.path()).check(wanted); }
  std::vector<float> values(const std::string& name, const Shape& shape) {
    const WeightsReader reader(dir_.path());
    const Weight weight = reader.read(name, shape);
    std::vector<float> list;
    for (std::int64_t i = 0; i < weight.view.info.elements(); ++i)
      list.push_back(
          number_at(weight.view.data.data() + i * size_of(weight.view.info.dtype), weight.view.info.dtype));
    return list;
  }

  const Published embeddings_ = counted("model.embed_tokens.weight", {4, 2});
  const Published norm_ = counted("model.norm.weight", {2});
  TemporaryDirectory dir_;
};

TEST_F(Weights, AHeadThatIsTiedAndTheSameIsTaken) {
  put({embeddings_, norm_, counted("lm_head.weight", {4, 2})});
  EXPECT_NO_THROW(check(kTied));
  // The same values in another format are the same, too.
  std::vector<double> wide;
  for (int i = 0; i < 8; ++i) wide.push_back(i);
  put({embeddings_, norm_, {"lm_head.weight", "F64", {4, 2}, raw(wide)}});
  EXPECT_NO_THROW(check(kTied));
}

// Programs that save a tensor with two names once may keep the head's.
TEST_F(Weights, AHeadInPlaceOfItsEmbeddingIsTakenIfTheyAreTied) {
  put({norm_, counted("lm_head.weight", {4, 2}, 3)});
  EXPECT_NO_THROW(check(kTied));
  EXPECT_EQ(values("model.embed_tokens.weight", {4, 2})[7], 21);
  std::vector<WantedTensor> both = kTied;
  both.push_back({"lm_head.weight", {4, 2}});
  EXPECT_ERROR(check(both), Code::kBadCheckpoint, "model.embed_tokens.weight", "missing");
}

TEST_F(Weights, AHeadThatIsTiedAndAnotherIsRefusedWithTheDifference) {
  put({embeddings_, norm_, counted("lm_head.weight", {4, 2}, 1.5F)});
  const Error e = error_of([&] { check(kTied); });
  EXPECT_EQ(e.code(), Code::kBadCheckpoint);
  EXPECT_THAT(e.place(), HasSubstr(": lm_head.weight"));
  EXPECT_THAT(e.cause(), HasSubstr("7 of its 8 numbers are others, by up to 3.5"));
  EXPECT_THAT(e.remedy(), HasSubstr("\"tie_word_embeddings\": false"));
  put({embeddings_, norm_, counted("lm_head.weight", {2, 4})});
  EXPECT_ERROR(check(kTied), Code::kBadCheckpoint, "lm_head.weight", "another shape");
}

// DeepSeek-V3 publishes the embedding and the head of its further predictions once more.
TEST_F(Weights, CopiesOfFurtherPredictionsAreTaken) {
  const std::vector<WantedTensor> wanted{{"model.embed_tokens.weight", {4, 2}}, {"lm_head.weight", {4, 2}}};
  const Published head = counted("lm_head.weight", {4, 2}, 3);
  put({embeddings_, head, counted("model.layers.61.embed_tokens.weight", {4, 2}),
       counted("model.layers.61.shared_head.head.weight", {4, 2}, 3)});
  EXPECT_NO_THROW(check(wanted));
  put({embeddings_, head, counted("model.layers.61.shared_head.head.weight", {4, 2})});
  EXPECT_ERROR(check(wanted), Code::kBadCheckpoint, "shared_head.head", "ties it to lm_head.weight");
}

TEST(TensorNames, WithoutThePartsOfWrappers) {
  for (const auto& [name, bare] :
       {std::pair{"_orig_mod.model.norm.weight", "model.norm.weight"},
        {"module.model.norm.weight", "model.norm.weight"},
        {"module._orig_mod.module.model.norm.weight", "model.norm.weight"},
        {"model.layers.0._orig_mod.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.weight"},
        {"_fsdp_wrapped_module.model.norm._checkpoint_wrapped_module.weight", "model.norm.weight"},
        {"model.modules.0.weight", "model.modules.0.weight"},
        {"weight", "weight"},
        {"a..b", "a..b"}})
    EXPECT_EQ(without_wrappers(name), bare) << name;
}

TEST_F(Weights, NamesOfWrappersAreThoseOfTheModel) {
  Published a = embeddings_, b = norm_;
  a.name = "_orig_mod." + a.name, b.name = "module._orig_mod." + b.name;
  put({a, b});
  EXPECT_NO_THROW(check(kTied));
  EXPECT_EQ(values("model.norm.weight", {2}), (std::vector<float>{0, 1}));
  put({a, embeddings_, norm_});
  EXPECT_ERROR(check(kTied), Code::kBadCheckpoint, "model.embed_tokens.weight", "another prefix");
}

TEST_F(Weights, ConstantsAreNoWeights) {
  put({embeddings_,
       norm_,
       counted("model.layers.0.self_attn.rotary_emb.inv_freq", {4}),
       counted("model.rotary_emb.inv_freq", {4}),
       counted("h.0.attn.masked_bias", {}),
       {"h.0.attn.bias", "BOOL", {1, 1, 2, 2}, std::string("\1\0\1\1", 4)},
       {"embeddings.position_ids", "I64", {1, 2}, std::string(16, '\0')}});
  EXPECT_NO_THROW(check(kTied));
}

// All 256 values, from their definition: sign, four bits of exponent with bias 7, three bits of fraction.
TEST(Float8, IsItsDefinition) {
  for (int v = 0; v < 256; ++v) {
    const int exponent = (v >> 3) & 15, fraction = v & 7;
    const double size = exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
    const float value = f8_e4m3_to_f32(static_cast<std::uint8_t>(v));
    if (exponent == 15 && fraction == 7)
      EXPECT_TRUE(std::isnan(value)) << v;
    else
      EXPECT_EQ(value, v >= 128 ? -size : size) << v;
  }
  EXPECT_EQ(f8_e4m3_to_f32(0x7e), 448);
}

// Blocks of 128 x 128, of which those at the edges are smaller.
TEST_F(Weights, Float8InBlocksIsDequantized) {
  const std::int64_t rows = 130, columns = 200;
  std::vector<std::uint8_t> bytes;
  for (std::int64_t i = 0; i < rows * columns; ++i) bytes.push_back(static_cast<std::uint8_t>(i % 120));
  const std::vector<float> scales{0.5F, 2, 3, 0.25F};
  const std::vector<WantedTensor> wanted{{"a.weight", {rows, columns}}};
  const Published weight{"a.weight", "F8_E4M3", {rows, columns}, raw(bytes)};
  put({weight, {"a.weight_scale_inv", "F32", {2, 2}, raw(scales)}});
  EXPECT_NO_THROW(check(wanted));
  const std::vector<float> read = values("a.weight", {rows, columns});
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) {
      const auto at = static_cast<std::size_t>(r * columns + c);
      ASSERT_EQ(read[at], f8_e4m3_to_f32(bytes[at]) * scales[static_cast<std::size_t>(r / 128 * 2 + c / 128)])
          << r << " " << c;
    }

  put({weight});
  EXPECT_ERROR(check(wanted), Code::kBadCheckpoint, "a.weight", "no scales for it: a.weight_scale_inv");
  put({weight, {"a.weight_scale_inv", "F32", {4}, raw(scales)}});
  EXPECT_ERROR(values("a.weight", {rows, columns}), Code::kBadCheckpoint, "a.weight_scale_inv", "shape [4]");
  put({weight, {"a.weight_scale_inv", "F32", {4}, raw(scales)}});
  put_file(dir_ / "config.json",
           R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [65, 100]}})");
  put({weight, {"a.weight_scale_inv", "F32", {2, 2}, raw(scales)}});
  EXPECT_EQ(values("a.weight", {rows, columns})[100], f8_e4m3_to_f32(bytes[100]) * 2);
}

TEST_F(Weights, OtherQuantizationsAreRefusedByName) {
  put({embeddings_, norm_});
  for (const auto& [config, place, named] :
       {std::tuple{R"({"quant_method": "gptq", "bits": 4})", "quant_method", "\"gptq\""},
        {R"({"quant_method": "awq"})", "quant_method", "\"awq\""},
        {R"({"load_in_4bit": true})", "quant_method", "\"bitsandbytes\""},
        {R"({"quant_method": "compressed-tensors"})", "quant_method", "\"compressed-tensors\""},
        {R"({})", "quant_method", "does not say how"},
        {R"({"quant_method": "fp8", "fmt": "e5m2"})", "fmt", "\"e5m2\""},
        {R"({"quant_method": "fp8", "weight_block_size": [128]})", "weight_block_size", "two numbers"},
        {R"({"quant_method": "fp8", "weight_block_size": [0, 1]})", "weight_block_size", "no size"}}) {
    put_file(dir_ / "config.json", std::string(R"({"quantization_config": )") + config + "}");
    EXPECT_ERROR(check(kTied), Code::kBadCheckpoint, place, named);
  }
}

TEST_F(Weights, FormatsOfNumbersThatAreNotReadAreNamed) {
  put({{"model.embed_tokens.weight", "I64", {4, 2}, std::string(64, '\0')}, norm_});
  EXPECT_ERROR(check(kTied), Code::kBadCheckpoint, "model.embed_tokens.weight", "dtype I64 is not supported");
}

TEST_F(Weights, WhatDiffersIsListedWithAGuess) {
  const auto refused = [&](const std::vector<Published>& tensors, const std::vector<WantedTensor>& wanted) {
    put(tensors);
    return error_of([&] { check(wanted); });
  };
  Error e = refused({embeddings_}, {{"model.embed_tokens.weight", {4, 2}}, {"lm_head.weight", {4, 2}}});
  EXPECT_EQ(e.cause(), "the tensor is missing");
  EXPECT_THAT(e.place(), HasSubstr(": lm_head.weight"));
  EXPECT_THAT(e.remedy(), HasSubstr("\"tie_word_embeddings\": true"));

  std::vector<WantedTensor> many;
  for (int i = 0; i < 6; ++i) many.push_back({"layer." + std::to_string(i), {1}});
  e = refused({norm_}, many);
  EXPECT_THAT(e.place(), HasSubstr(": layer.0"));
  EXPECT_EQ(
      e.cause(),
      "the tensor is missing; so are layer.1, layer.2, layer.3 and 2 more; the checkpoint has 1 that the "
      "model has not: model.norm.weight");

  Published inner = embeddings_, inner_norm = norm_;
  inner.name = "language." + inner.name, inner_norm.name = "language." + inner_norm.name;
  EXPECT_THAT(refused({inner, inner_norm}, kTied).remedy(), HasSubstr("all names have \"language.\" before"));
  for (const auto& [name, guess] : {std::pair{"model.layers.0.self_attn.q_proj.bias", "biases"},
                                    {"model.layers.0.self_attn.q_proj.lora_A.weight", "LoRA"},
                                    {"model.layers.0.self_attn.q_norm.weight", "Qwen3"},
                                    {"model.layers.0.mlp.up_proj.qweight", "quantized"}})
    EXPECT_THAT(refused({embeddings_, norm_, counted(name, {1})}, kTied).remedy(), HasSubstr(guess)) << name;
}

}  // namespace
}  // namespace hyperrun::testing
