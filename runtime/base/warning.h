// A warning tells of something that is legal and hardly meant. It ends nothing: the user sees the place, what
// it costs and what to write.
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
