// A config.json that comes back as it was given.
#include "runtime/model/checkpoint/given_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

using Document = nlohmann::ordered_json;

// The order is not ours, some keys are unknown, others have another spelling of a default.
constexpr const char* kGiven = R"({
  "architectures": ["LlamaForCausalLM"],
  "model_type": "llama",
  "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
  "num_attention_heads": 4, "num_key_value_heads": 2,
  "max_position_embeddings": 4096,
  "vocab_size": 300, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
  "bos_token_id": 1, "eos_token_id": [2, 3], "pad_token_id": 0,
  "torch_dtype": "float32", "use_cache": true, "auto_map": {"AutoModel": "x.py"}
})";

class GivenConfig : public ::testing::Test {
 protected:
  GivenConfig() { put_file(path_, kGiven); }

  std::string written(const HfConfig& config) const { return to_config_json(config, path_); }
  // The fields of the result that differ from those given, with their values.
  Document changes(const HfConfig& config) const {
    const Document before = Document::parse(content(path_)), after = Document::parse(written(config));
    Document changed = Document::object();
    for (const auto& [field, value] : after.items())
      if (!before.contains(field) || before.at(field) != value) changed[field] = value;
    for (const auto& [field, value] : before.items())
      if (!after.contains(field)) changed[field] = "gone";
    return changed;
  }

  const TemporaryDirectory dir_;
  const std::filesystem::path path_ = dir_ / "config.json";
};

TEST_F(GivenConfig, UnchangedIsTheSameText) { EXPECT_EQ(written(read_config(path_)), kGiven); }

TEST_F(GivenConfig, AShorterSequenceChangesNothingALongerOneDoes) {
  HfConfig config = read_config(path_);
  config.model.sequence = 48;
  EXPECT_EQ(written(config), kGiven);
  config.model.sequence = 8192;
  EXPECT_EQ(changes(config), (Document{{"max_position_embeddings", 8192}}));
}

TEST_F(GivenConfig, OnlyWhatTheJobChangedIsChanged) {
  HfConfig config = read_config(path_);
  config.model.vocab = 320;
  config.ends_of_text = {{7}};
  EXPECT_EQ(changes(config), (Document{{"vocab_size", 320}, {"eos_token_id", 7}}));
  std::vector<std::string> order, before;
  const Document now = Document::parse(written(config)), given = Document::parse(kGiven);
  for (const auto& [field, value] : now.items()) order.push_back(field);
  for (const auto& [field, value] : given.items()) before.push_back(field);
  EXPECT_EQ(order, before);
}

// The file says how its weights are stored, whatever it was given.
TEST_F(GivenConfig, TheFormatIsThatOfTheFile) {
  for (const char* field : {"torch_dtype", "dtype"})
    for (const char* format : {"bfloat16", "float16"}) {
      Document given = Document::parse(kGiven);
      given.erase("torch_dtype");
      given[field] = format;
      put_file(path_, given.dump());
      HfConfig config = read_config(path_);
      config.dtype = DType::kF32;
      EXPECT_EQ(changes(config), (Document{{field, "float32"}}));
    }
}

TEST_F(GivenConfig, AQuantizationGoes) {
  Document given = Document::parse(kGiven);
  given["quantization_config"] = {{"quant_method", "fp8"}};
  put_file(path_, given.dump());
  EXPECT_EQ(changes(read_config(path_)), (Document{{"quantization_config", "gone"}}));
}

}  // namespace
}  // namespace hyperrun
