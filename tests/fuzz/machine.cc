// Profiles of machines and software, and tables of kernels.
#include "runtime/spec/kernel_table_reader.h"
#include "runtime/spec/profile_reader.h"
#include "runtime/spec/profile_writer.h"
#include "runtime/spec/software_reader.h"
#include "tests/fuzz/fuzz.h"

using namespace hyperrun;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::take_or_refuse_at([&] { parse_profile(text, "/machine"); });
  fuzz::take_or_refuse_at([&] { parse_software(text, "/software"); });
  fuzz::take_or_refuse_at([&] { read_kernels(text, "/kernels"); });
  return 0;
}
