// What is legal and hardly meant. A warning ends nothing; the user sees where it is, what it costs and what
// to write.
#pragma once

#include <string>

namespace hyperrun {

struct Warning {
  std::string place, cause, remedy;

  bool operator==(const Warning&) const = default;
};

// Two lines, as those of an Error: "PLACE: warning: CAUSE" and "  fix: REMEDY".
std::string to_string(const Warning& warning);

}  // namespace hyperrun
