// A host file of mpirun; what is taken is written and read again.
#include "runtime/process/hostfile.h"

#include "tests/fuzz/fuzz.h"

using namespace hyperrun;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::take_or_refuse_at([&] {
    const std::vector<process::HostLine> lines = process::parse_hosts(fuzz::text_of(data, size), "/hosts");
    // A name may begin with the bytes of a mark, which is none behind the text's begin.
    const std::string text = "\n" + process::text_of(lines);
    fuzz::expect("\n" + process::text_of(process::parse_hosts(text, "/hosts")) == text,
                 "other hosts once written");
  });
  return 0;
}
