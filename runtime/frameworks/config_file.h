// Reads configurations in YAML, JSON and TOML as a list of settings, each with its path of keys, value and
// place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/frameworks/finding.h"

namespace hyperrun::frameworks {

// Names are paths of keys ("training.steps"); elements of lists of blocks have their number as a key. A list
// of plain values is one value with blanks. All throw kSyntax with the place.
std::vector<Setting> read_yaml(const std::string& path, std::string_view content);
std::vector<Setting> read_json_config(const std::string& path, std::string_view content);
std::vector<Setting> read_toml(const std::string& path, std::string_view content);

}  // namespace hyperrun::frameworks
