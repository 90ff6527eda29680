#include "tests/frameworks/support.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace hyperrun::frameworks::testing {

namespace fs = std::filesystem;

const std::string kArguments = R"(
    --num-layers 8 --hidden-size 512 --num-attention-heads 8 --ffn-hidden-size 1024 --seq-length 256
    --max-position-embeddings 256 --padded-vocab-size 1024 --swiglu --normalization RMSNorm
    --position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights
    --micro-batch-size 1 --global-batch-size 32 --bf16 --lr 3e-4 --train-iters 100
)";

ImportedRun imported(const std::string& name, std::string_view content, const RunImport& options) {
  return import_run(fs::path(name), content, options);
}

Finding finding_of(const ImportedRun& run, std::string_view name) {
  const auto at =
      std::ranges::find_if(run.findings, [&](const Finding& f) { return f.setting.name == name; });
  if (at != run.findings.end()) return *at;
  ADD_FAILURE() << "no setting " << name;
  return {};
}

std::string refusal(const std::string& name, std::string_view content, const RunImport& options) {
  try {
    imported(name, content, options);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

Folder::Folder() {
  std::string path = (fs::temp_directory_path() / "frameworks_test_XXXXXX").string();
  path_ = mkdtemp(path.data());
}
Folder::~Folder() {
  std::error_code none;
  fs::remove_all(path_, none);
}
std::string Folder::put(const std::string& name, const std::string& content) const {
  const fs::path file = fs::path(path_) / name;
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
  return file.string();
}

}  // namespace hyperrun::frameworks::testing
