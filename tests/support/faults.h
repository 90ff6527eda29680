// Runs a verifier, and returns its message.
#pragma once

#include <exception>
#include <string>

#include "runtime/ir/program.h"

namespace hyperrun::testing {

// The message of verify(), "" when it finds nothing.
template <class Ir>
std::string fault(const Ir& ir) {
  try {
    verify(ir);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

}  // namespace hyperrun::testing
