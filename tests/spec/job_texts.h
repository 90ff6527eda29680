// A small valid job that the tests vary.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace hyperrun {

inline constexpr std::string_view kJobText = R"(name: "t"
supernode { devices: 4 hbm: "64 MiB" }
model {
  layers: 2
  hidden: 64
  heads: 4
  kv_heads: 2
  vocab: 512
  sequence: 32
}
parallel {
  mesh { name: "dp" size: 2 }
  mesh { name: "tp" size: 2 }
  presets: ["dp", "tp"]
  rules { tensor: "a.*" dims { dim: "heads" axes: "tp" } }
}
data { corpus: "/c.txt" }
training {
  steps: 10
  batch: 8
  micro_batches: 2
  lr: 1e-3
}
run { generate { prompt: "x" tokens: 4 } }
)";

// The job with the first `from` replaced; `from` must be there.
inline std::string with(std::string_view from, std::string_view to) {
  std::string text(kJobText);
  std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

inline std::string file_content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace hyperrun
