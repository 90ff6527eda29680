// Configurations of the tests, and what they become.
#pragma once

#include <string>
#include <string_view>

#include "runtime/frameworks/import.h"

namespace hyperrun::frameworks::testing {

// Imports a text as if it were a file of this name.
ImportedRun imported(const std::string& name, std::string_view content, const RunImport& options = {});

// What came of the setting of this name; fails the test and returns a taken one if it is not there.
Finding finding_of(const ImportedRun& run, std::string_view name);

// The message of the error with which the import ends; empty: it does not end with one.
std::string refusal(const std::string& name, std::string_view content, const RunImport& options = {});

// A folder for files of one test, which goes with it.
class Folder {
 public:
  Folder();
  ~Folder();
  std::string put(const std::string& name, const std::string& content) const;  // returns the path

 private:
  std::string path_;
};

// Arguments of Megatron-LM for a small model on eight devices, in which tests change some.
extern const std::string kArguments;

}  // namespace hyperrun::frameworks::testing
