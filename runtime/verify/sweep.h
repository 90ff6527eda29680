// Random layouts beside one device, one after the other.
#pragma once

#include <cstdint>
#include <functional>

#include "runtime/verify/verify.h"

namespace hyperrun {

struct Sweep {
  const Job* base = nullptr;  // whose model and training are taken; null: random ones
  int count = 1;
  std::uint64_t seed = 1;  // of the first; the next has the next
};

// Prints a line for each: seed, result and the job itself, as text that can be given again. While a job is
// verified it lies in NAME.textproto in the working directory; there it stays if it diverges or `verify`
// throws an Error, or if that never ends. The others go on. Throws the first of these Errors in the end, with
// a remedy that names the file.
void verify_sweep(const Sweep& sweep, const std::function<Verification(const Job&)>& verify);

}  // namespace hyperrun
