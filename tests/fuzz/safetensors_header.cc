// The header of a safetensors file; the first two bytes of the input say how many bytes of data follow it.
#include "runtime/model/checkpoint/safetensors_header.h"

#include "tests/fuzz/fuzz.h"

using namespace hyperrun;

namespace {

// Tensors cover the data exactly, so that no view leads out of the file.
void check(const SafetensorsHeader& header, std::int64_t data_bytes) {
  std::int64_t end = 0;
  for (const PlacedTensor& tensor : header.tensors) {
    fuzz::expect(tensor.begin == end, "a tensor that does not follow the one before");
    for (const std::int64_t size : tensor.info.shape) fuzz::expect(size >= 0, "a negative size");
    fuzz::expect(tensor.info.bytes() >= 0, "a tensor of negative size");
    end += tensor.info.bytes();
  }
  fuzz::expect(end == data_bytes, "tensors that do not cover the data");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::int64_t data_bytes = data[0] + 256 * data[1];
  fuzz::take_or_refuse_at([&] {
    check(decode_header(fuzz::text_of(data + 2, size - 2), data_bytes, "/model.safetensors"), data_bytes);
  });
  return 0;
}
