// All fuzz targets use these functions. A target has LLVMFuzzerTestOneInput, which gives the bytes of a
// stranger to a reader. libFuzzer calls it with inputs that it makes up (tools/fuzz); corpus_main.cc with
// those of a folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "runtime/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace hyperrun::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Ends the process, so that the input is kept as a finding.
[[noreturn]] inline void finding(const std::string& what) {
  std::fprintf(stderr, "FINDING: %s\n", what.c_str());
  std::abort();
}

inline void expect(bool holds, const char* what) {
  if (!holds) finding(what);
}

// Runs `read`, which takes its bytes or refuses them by an Error that tells a user what is wrong. An error of
// hyperrun's own is a finding; so is any other exception, which nobody catches.
template <class Read>
void take_or_refuse(Read read) {
  try {
    read();
  } catch (const Error& e) {
    if (e.code() == Code::kInternal) finding(e.what());
    expect(!e.cause().empty(), "an error without a cause");
    expect(!e.remedy().empty(), "an error without a remedy");
  }
}

// The same for a reader of files, whose errors have a place.
template <class Read>
void take_or_refuse_at(Read read) {
  take_or_refuse([&] {
    try {
      read();
    } catch (const Error& e) {
      expect(!e.place().empty(), "an error without a place");
      throw;
    }
  });
}

}  // namespace hyperrun::fuzz
