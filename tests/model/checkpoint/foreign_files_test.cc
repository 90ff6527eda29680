// Files that are not what their place promises: pointers, weights of other programs, shards that are missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/model/checkpoint/files.h"
#include "runtime/model/checkpoint/hf_config.h"
#include "runtime/model/checkpoint/lfs_pointer.h"
#include "runtime/model/checkpoint/safetensors.h"
#include "runtime/model/checkpoint/text_lines.h"
#include "tests/model/checkpoint/published.h"
#include "tests/support/errors.h"

namespace hyperrun::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kPointer =
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:5f3b9f0a\n"
    "size 4976698672\n";

TEST(LfsPointer, IsNamedWhateverTheFile) {
  const TemporaryDirectory dir;
  for (const char* name : {"model.safetensors", "config.json", "tokenizer.json", "corpus.txt"})
    put_file(dir / name, kPointer);
  const auto refused = [](const Error& e, Code code, const std::string& place) {
    EXPECT_EQ(e.code(), code);
    EXPECT_THAT(e.place(), HasSubstr(place));
    EXPECT_THAT(e.cause(), HasSubstr("a Git LFS pointer to a file of 4,976,698,672 bytes"));
    EXPECT_THAT(e.remedy(), HasSubstr("git lfs pull"));
  };
  refused(error_of([&] { SafetensorsReader reader(dir.path()); }), Code::kBadCheckpoint, "model.safetensors");
  refused(error_of([&] { read_config(dir.path()); }), Code::kBadCheckpoint, "config.json");
  refused(error_of([&] { read_file(dir / "tokenizer.json", Code::kBadTokenizer); }), Code::kBadTokenizer,
          "tokenizer.json");
  refused(error_of([&] { read_file(dir / "corpus.txt", Code::kBadCorpus); }), Code::kBadCorpus, "corpus.txt");
}

TEST(LfsPointer, IsASmallTextOfItsForm) {
  EXPECT_EQ(lfs_pointer_bytes(kPointer), 4976698672);
  EXPECT_EQ(lfs_pointer_bytes("version https://git-lfs.github.com/spec/v1\nsize 12\n"), 12);
  EXPECT_EQ(lfs_pointer_bytes(kPointer + std::string(2000, ' ')), std::nullopt);
  EXPECT_EQ(lfs_pointer_bytes("see " + kPointer), std::nullopt);
}

TEST(ForeignWeights, AreRefusedWithWhatConvertsThem) {
  for (const auto& [file, cause, fix] :
       {std::tuple{"pytorch_model.bin", "PyTorch's weights", "save_pretrained"},
        {"pytorch_model-00001-of-00002.bin", "PyTorch's weights", "save_pretrained"},
        {"consolidated.00.pth", "as Meta publishes", "convert_llama_weights_to_hf"},
        {"adapter_model.safetensors", "an adapter", "merge_and_unload"},
        {"zero_to_fp32.py", "DeepSpeed", "--safe_serialization"},
        {"pytorch_model_fsdp_0", "FSDP", "accelerate merge-weights"},
        {"model.pt", "has model.pt", "save_pretrained"},
        {"model-q4.gguf", "has model-q4.gguf", "gguf_file"}}) {
    const TemporaryDirectory dir;
    put_file(dir / "config.json", "{}");
    put_file(dir / file, "x");
    const Error e = error_of([&] { SafetensorsReader reader(dir.path()); });
    EXPECT_EQ(e.code(), Code::kBadCheckpoint) << file;
    EXPECT_THAT(e.cause(), HasSubstr(cause)) << file;
    EXPECT_THAT(e.remedy(), HasSubstr(fix)) << file;
  }
}

TEST(ForeignWeights, OfAFolderWithASlashHaveTheSameRemedy) {
  const TemporaryDirectory dir;
  put_file(dir / "adapter_model.safetensors", "x");
  const Error e = error_of([&] { SafetensorsReader reader(dir.path().string() + "/"); });
  EXPECT_THAT(e.remedy(), HasSubstr("save_pretrained('" + dir.path().string() + "-merged')"));
}

TEST(ForeignWeights, AreToldByTheirFirstBytes) {
  const TemporaryDirectory dir;
  put_file(dir / "model.safetensors", std::string("PK\3\4 and so on", 14));
  EXPECT_ERROR(SafetensorsReader(dir.path()), Code::kBadCheckpoint, "model.safetensors", "a file of PyTorch");
  put_file(dir / "m.gguf", "GGUF and so on");
  EXPECT_ERROR(SafetensorsReader(dir / "m.gguf"), Code::kBadCheckpoint, "m.gguf", "a file of GGUF");
}

TEST(ForeignWeights, UnderAnotherNameAreNoticed) {
  const TemporaryDirectory dir;
  publish(dir / "weights.safetensors", {counted("a", {1})});
  const Error e = error_of([&] { SafetensorsReader reader(dir.path()); });
  EXPECT_EQ(e.code(), Code::kMissingFile);
  EXPECT_THAT(e.remedy(), HasSubstr("weights.safetensors"));
}

TEST(ShardsWithoutAnIndex, AreReadIfAllAreThere) {
  const TemporaryDirectory dir;
  publish(dir / "model-00001-of-00002.safetensors", {counted("a", {1})});
  EXPECT_ERROR(SafetensorsReader(dir.path()), Code::kMissingFile, dir.path().string(),
               "1 of the 2 shards is not there: model-00002-of-00002.safetensors");
  publish(dir / "model-00002-of-00002.safetensors", {counted("b", {1})});
  EXPECT_EQ(SafetensorsReader(dir.path()).tensors().size(), 2U);
}

TEST(ShardsOfAnIndex, ThatAreMissingAreListed) {
  const TemporaryDirectory dir;
  nlohmann::json map;
  for (int i = 1; i <= 6; ++i) map["t" + std::to_string(i)] = "s" + std::to_string(i) + ".safetensors";
  put_file(dir / "model.safetensors.index.json", nlohmann::json{{"weight_map", map}}.dump());
  publish(dir / "s2.safetensors", {counted("t2", {1})});
  EXPECT_ERROR(SafetensorsReader(dir.path()), Code::kMissingFile, "index.json",
               "5 of the 6 shards are not there: s1.safetensors, s3.safetensors, s4.safetensors, 2 more");
}

TEST(TextLines, AreThoseOfUnix) {
  EXPECT_THAT(lines_of("\xEF\xBB\xBF"
                       "a\r\n\r\nb\rc\n\nd"),
              ElementsAre("a", "", "b\rc", "", "d"));
  EXPECT_TRUE(lines_of("").empty());
  EXPECT_TRUE(lines_of("\xEF\xBB\xBF").empty());
  EXPECT_THAT(lines_of("a\n"), ElementsAre("a"));
}

}  // namespace
}  // namespace hyperrun::testing
