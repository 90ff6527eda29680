// Thousands of damaged files: each is read back as it was written, or refused. There is never a crash, and
// never an access outside the file, which the sanitizer build would find.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "runtime/model/checkpoint/hf_config.h"
#include "runtime/model/checkpoint/safetensors.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

std::string good_file(const TemporaryDirectory& dir) {
  const std::vector<TensorInfo> infos = {{"model.embed_tokens.weight", DType::kF32, {5, 4}},
                                         {"model.norm.weight", DType::kBF16, {4}},
                                         {"step", DType::kI32, {}}};
  SafetensorsWriter writer(dir / "good", infos);
  for (std::size_t i = 0; i < infos.size(); ++i)
    writer.write(i, 0, std::vector<std::byte>(static_cast<std::size_t>(infos[i].bytes()), std::byte{0x11}));
  writer.commit();
  return read_file(dir / "good", Code::kBadCheckpoint);
}

// The cause of the Error that loading throws; "" when it loads. Touches every byte.
std::string refusal(const std::filesystem::path& path) try {
  const SafetensorsReader reader(path);
  std::size_t total = 0, ones = 0;
  for (const auto& [name, tensor] : reader.tensors()) {
    EXPECT_EQ(std::ssize(tensor.data), tensor.info.bytes());
    total += tensor.data.size();
    ones += static_cast<std::size_t>(std::ranges::count(tensor.data, std::byte{0x11}));
  }
  EXPECT_LE(ones, total);
  return "";
} catch (const Error& e) {
  EXPECT_EQ(e.code(), Code::kBadCheckpoint) << e.what();
  EXPECT_THAT(e.place(), ::testing::HasSubstr(path.string()));
  EXPECT_NE(e.cause(), "");
  return e.cause();
}

TEST(Corruption, EveryTruncationIsRefused) {
  const TemporaryDirectory dir;
  const std::string good = good_file(dir);
  ASSERT_EQ(refusal(dir / "good"), "");
  for (std::size_t size = 0; size < good.size(); ++size) {
    put_file(dir / "bad", good.substr(0, size));
    EXPECT_THAT(refusal(dir / "bad"), ::testing::HasSubstr("truncated")) << size;
  }
  put_file(dir / "bad", good + "x");
  EXPECT_THAT(refusal(dir / "bad"), ::testing::HasSubstr("belong to none"));
}

TEST(Corruption, EveryLengthWordIsRefusedButTheRightOne) {
  const TemporaryDirectory dir;
  const std::string good = good_file(dir);
  for (int byte = 0; byte < 8; ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[static_cast<std::size_t>(byte)] =
          static_cast<char>(bad[static_cast<std::size_t>(byte)] ^ (1 << bit));
      put_file(dir / "bad", bad);
      std::uint64_t length = 0;
      std::memcpy(&length, bad.data(), sizeof length);
      const bool beyond = length > bad.size() - sizeof length;
      EXPECT_THAT(refusal(dir / "bad"), ::testing::HasSubstr(beyond ? "truncated" : "")) << length;
      EXPECT_NE(refusal(dir / "bad"), "") << length;
    }
}

TEST(Corruption, RandomDamageNeverCrashes) {
  const TemporaryDirectory dir;
  const std::string good = good_file(dir);
  std::mt19937 random(7);
  int loaded = 0;
  constexpr int kFiles = 5000;
  for (int i = 0; i < kFiles; ++i) {
    std::string bad = good;
    const int edits = 1 + static_cast<int>(random() % 4);
    for (int e = 0; e < edits; ++e) {
      const std::size_t at = random() % bad.size();
      switch (random() % 4) {
        case 0: bad[at] = static_cast<char>(random()); break;
        case 1: bad[at] = "0123456789[]{},:\""[random() % 17]; break;
        case 2: bad.erase(at, 1 + random() % 8); break;
        default: bad.insert(at, bad.substr(random() % bad.size(), 1 + random() % 8)); break;
      }
      if (bad.empty()) bad = "x";
    }
    put_file(dir / "bad", bad);
    loaded += refusal(dir / "bad").empty();
  }
  // Damage to data alone cannot be detected; damage to the header must be, nearly always.
  EXPECT_LT(loaded, kFiles / 2);
}

// A parser that recurses would overflow its stack.
TEST(Corruption, DeepNestingIsRefused) {
  const TemporaryDirectory dir;
  const std::string deep =
      "{\"hidden_act\":" + std::string(2'000'000, '[') + std::string(2'000'000, ']') + "}";
  put_file(dir / "config.json", deep);
  EXPECT_ERROR(read_config(dir.path()), Code::kBadCheckpoint, "config.json", "nested too deeply");
}

TEST(Corruption, RandomDamageToConfigNeverCrashes) {
  const TemporaryDirectory dir;
  const std::string good = to_config_json({ModelSpec{"llama", 2, 64, 4, 2, 16, 128, 300, 32}});
  std::mt19937 random(11);
  for (int i = 0; i < 2000; ++i) {
    std::string bad = good;
    bad[random() % bad.size()] = static_cast<char>(random());
    if (random() % 2) bad.erase(random() % bad.size(), 1 + random() % 20);
    put_file(dir / "config.json", bad);
    try {
      read_config(dir.path());
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kBadCheckpoint) << e.what();
    }
  }
}

}  // namespace
}  // namespace hyperrun
