#include "runtime/process/crash_trace.h"

#include <gtest/gtest.h>

namespace hyperrun::process {
namespace {

// The output of mpirun 4.1.4, shortened.
const std::string kTrace =
    "mpirun: abort is already in progress...hit ctrl-c again to forcibly terminate\n"
    "[vm:28759] *** Process received signal ***\n"
    "[vm:28759] Signal: Segmentation fault (11)\n"
    "[vm:28759] [ 1] /lib/x86_64-linux-gnu/libpmix.so.2(PMIx_Finalize+0x703)[0x7fc548450e83]\n"
    "[vm:28759] *** End of error message ***\n";

TEST(CrashTrace, IsLeftOutWhereverTheBytesAreCut) {
  const std::string said = "before\n" + kTrace + "[vm:28759] a help message\nafter, without an end";
  for (std::size_t cut = 0; cut <= said.size(); ++cut) {
    CrashTrace trace(28759);
    std::string kept = trace.without(std::string_view(said).substr(0, cut));
    kept += trace.without(std::string_view(said).substr(cut));
    kept += trace.rest();
    EXPECT_EQ(kept, "before\n[vm:28759] a help message\nafter, without an end") << cut;
  }
}

TEST(CrashTrace, OfARankIsKept) {
  CrashTrace trace(2875);
  const std::string of_a_rank = kTrace.substr(kTrace.find('\n') + 1);
  EXPECT_EQ(trace.without(of_a_rank), of_a_rank);
}

}  // namespace
}  // namespace hyperrun::process
