// Reads a Python recipe of Megatron-Bridge as far as it is data: assignments of plain values to fields of a
// configuration, keyword arguments, and entries of a dictionary. Nothing is executed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/frameworks/finding.h"

namespace hyperrun::frameworks {

struct RecipeSettings {
  std::vector<Setting> settings;
  std::vector<Assumption> notes;  // values that are expressions, functions of other files
  std::string name;               // of the function that was read
};

// `function` names the recipe; empty: the only one of the file. Throws kMissingField, with the names that
// there are, if it is not there or not clear.
RecipeSettings read_python_recipe(const std::string& path, std::string_view content,
                                  const std::string& function);

}  // namespace hyperrun::frameworks
