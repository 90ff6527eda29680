#include "runtime/base/warning.h"

namespace hyperrun {

std::string to_string(const Warning& warning) {
  return (warning.place.empty() ? "" : warning.place + ": ") + "warning: " + warning.cause +
         "\n  fix: " + warning.remedy + "\n";
}

}  // namespace hyperrun
