// A host file of mpirun; what is taken is written and read again.
#include "runtime/process/hostfile.h"

#include "tests/fuzz/fuzz.h"

using namespace hyperrun;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::take_or_refuse_at([&] {
    const std::vector<process::HostLine> lines = process::parse_hosts(fuzz::text_of(data, size), "/hosts");
    const std::string text = process::text_of(lines);
    fuzz::expect(process::text_of(process::parse_hosts(text, "/hosts")) == text, "other hosts once written");
  });
  return 0;
}
