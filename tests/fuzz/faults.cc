// A file of faults (--faults).
#include "runtime/spec/faults_reader.h"
#include "tests/fuzz/fuzz.h"

using namespace hyperrun;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::take_or_refuse_at([&] { parse_faults(fuzz::text_of(data, size), "/faults"); });
  return 0;
}
