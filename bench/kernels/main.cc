// Rates of the kernels on one thread, for the two models of the throughput numbers (argument 256 or 512),
// with the machine's sgemm rate beside them: each GFLOP/s divided by that of BM_Sgemm is a kernel's share of
// it.
#include <benchmark/benchmark.h>

#include "runtime/device/kernels/thread.h"

int main(int argc, char** argv) {
  hyperrun::kernels::use_calling_thread_only();
  hyperrun::kernels::flush_denormals(true);
  benchmark::AddCustomContext("vector target", hyperrun::kernels::vector_target());
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
