#include "runtime/base/flags.h"

#include <cstdlib>

namespace hyperrun {
namespace {

std::string read(const char* name, const char* otherwise = "") {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

}  // namespace

const Flags& flags() {
  static const Flags kFlags{read("HYPERRUN_DUMP"), read("HYPERRUN_LOG", "info"), read("HYPERRUN_CONTROLLER"),
                            read("HYPERRUN_SECRET"), read("HYPERRUN_FAULT")};
  return kFlags;
}

}  // namespace hyperrun
