// The data of invocations: requests, samples and input vectors, which are written and read again.
#include "runtime/inference/requests_io.h"
#include "runtime/inference/samples_io.h"
#include "runtime/inference/vectors_io.h"
#include "tests/fuzz/fuzz.h"

using namespace hyperrun;

namespace {

// The first reading may change bytes, as several may say the same. A second one must not change them again.
template <class Read>
void check(std::string_view bytes, Read read) {
  fuzz::take_or_refuse([&] {
    const std::string written = to_bytes(read(bytes));
    fuzz::expect(to_bytes(read(written)) == written, "other values once written");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  check(bytes, requests_from_bytes);
  check(bytes, samples_from_bytes);
  check(bytes, vectors_from_bytes);
  are_samples(bytes);
  are_vectors(bytes);
  return 0;
}
