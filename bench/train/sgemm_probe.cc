// The machine's own sgemm rate at this moment, for compare.py to put beside each round. PROCESSES processes
// of one thread each multiply N^3 matrices at once, as that many ranks would. OpenBLAS is called past gemm(),
// which may choose our own product; that one is measured apart.
//
//   sgemm_probe PROCESSES   prints {"processes":2,"openblas_256":..,"openblas_1024":..,"packed_256":..,...}
//
// The rates are GFLOP/s per process: the mean over the processes of each one's median.
#include <cblas.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <new>
#include <vector>

#include "runtime/device/kernels/packed_gemm.h"
#include "runtime/device/kernels/thread.h"

namespace {

using hyperrun::kernels::Trans;

constexpr int kMostProcesses = 64;
enum class Product { kOpenBlas, kPacked };

struct Measurement {
  const char* name;
  Product product;
  std::int64_t n;
};
constexpr Measurement kMeasurements[] = {{"openblas_256", Product::kOpenBlas, 256},
                                         {"openblas_1024", Product::kOpenBlas, 1024},
                                         {"packed_256", Product::kPacked, 256},
                                         {"packed_1024", Product::kPacked, 1024}};
constexpr int kCount = static_cast<int>(std::size(kMeasurements));
constexpr double kSecondsEach = 0.2;

struct Shared {
  std::atomic<int> arrived{0};
  double gflops[kCount][kMostProcesses]{};
};

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void meet(Shared& shared, int target) {
  shared.arrived.fetch_add(1);
  while (shared.arrived.load() < target) sched_yield();
}

double median_gflops(Product product, std::int64_t n) {
  const auto count = static_cast<std::size_t>(n * n);
  std::vector<float> a(count, 0.5F), b(count, 0.25F), c(count);
  const auto size = static_cast<int>(n);
  const auto multiply = [&] {
    if (product == Product::kPacked) {
      hyperrun::kernels::packed_gemm(Trans::kNo, Trans::kNo, n, n, n, a.data(), n, b.data(), n, 0.0F,
                                     c.data(), n);
    } else {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, size, size, 1.0F, a.data(), size, b.data(),
                  size, 0.0F, c.data(), size);
    }
  };
  multiply();  // first touch
  std::vector<double> times;
  for (double begin = seconds(), from = begin; from - begin < kSecondsEach;) {
    multiply();
    const double to = seconds();
    times.push_back(to - from);
    from = to;
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return 2e-9 * static_cast<double>(n * n * n) / times[times.size() / 2];
}

void measure(Shared& shared, int process, int processes) {
  hyperrun::kernels::use_calling_thread_only();
  for (int i = 0; i < kCount; ++i) {
    meet(shared, processes * (i + 1));
    shared.gflops[i][process] = median_gflops(kMeasurements[i].product, kMeasurements[i].n);
  }
}

double mean(const double* values, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += values[i];
  return sum / n;
}

}  // namespace

int main(int argc, char** argv) {
  const int processes = argc == 2 ? std::atoi(argv[1]) : 0;
  if (processes < 1 || processes > kMostProcesses) {
    std::fprintf(stderr, "usage: sgemm_probe PROCESSES (1 to %d)\n", kMostProcesses);
    return 2;
  }
  void* page = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return 1;
  auto& shared = *new (page) Shared;
  for (int p = 1; p < processes; ++p) {
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      measure(shared, p, processes);
      _exit(0);
    }
  }
  measure(shared, 0, processes);
  for (int p = 1; p < processes; ++p) wait(nullptr);
  std::printf("{\"processes\":%d", processes);
  for (int i = 0; i < kCount; ++i)
    std::printf(",\"%s\":%.1f", kMeasurements[i].name, mean(shared.gflops[i], processes));
  std::printf("}\n");
  return 0;
}
