// A directory for one test, removed at its end.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "runtime/base/error.h"

namespace hyperrun {

class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "hyperrun-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() { std::filesystem::remove_all(path_); }

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

  // Names in the directory, hidden ones too.
  int entries() const {
    int count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path_)) ++count;
    return count;
  }

 private:
  std::filesystem::path path_;
};

// Plain writing, without the flush to the disk that makes write_file slow: for inputs of a test. A file of
// the same name is removed first, as some file systems flush a file that is cut off and written anew.
inline void put_file(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << content;
}

// `statement` throws an Error with this code, whose place and cause have these parts.
#define EXPECT_ERROR(statement, expected_code, place_part, cause_part)    \
  try {                                                                   \
    statement;                                                            \
    ADD_FAILURE() << #statement << " throws nothing";                     \
  } catch (const ::hyperrun::Error& e) {                                  \
    EXPECT_EQ(name(e.code()), name(expected_code)) << e.what();           \
    EXPECT_THAT(e.place(), ::testing::HasSubstr(place_part)) << e.what(); \
    EXPECT_THAT(e.cause(), ::testing::HasSubstr(cause_part)) << e.what(); \
  }

}  // namespace hyperrun
