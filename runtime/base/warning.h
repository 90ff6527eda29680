// A warning is about something legal that the user hardly meant. It ends nothing. The user sees the place,
// the cost and a remedy.
#pragma once

#include <string>

namespace hyperrun {

struct Warning {
  std::string place, cause, remedy;

  bool operator==(const Warning&) const = default;
};

// Two lines in the form of an Error: "PLACE: warning: CAUSE" and "  fix: REMEDY".
std::string to_string(const Warning& warning);

}  // namespace hyperrun
