// The machine's own sgemm rate at this moment, for compare.py to put beside each round: PROCESSES processes
// of one thread each multiply N^3 matrices at once, as that many ranks would.
//
//   sgemm_probe PROCESSES   prints one JSON line: {"processes":2,"gflops_256":..,"gflops_1024":..}
//
// The rates are per process: the mean over the processes of each one's median.
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

#include "runtime/device/kernels/gemm.h"
#include "runtime/device/kernels/thread.h"

namespace {

using hyperrun::kernels::Trans;

constexpr int kMostProcesses = 64;
constexpr int kSizes = 2;
constexpr std::int64_t kSize[kSizes] = {256, 1024};
constexpr double kSecondsEach = 0.25;

struct Shared {
  std::atomic<int> arrived{0};
  double gflops[kSizes][kMostProcesses]{};
};

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void meet(Shared& shared, int target) {
  shared.arrived.fetch_add(1);
  while (shared.arrived.load() < target) sched_yield();
}

double median_gflops(std::int64_t n) {
  const auto count = static_cast<std::size_t>(n * n);
  std::vector<float> a(count, 0.5F), b(count, 0.25F), c(count);
  const auto multiply = [&] {
    hyperrun::kernels::gemm(Trans::kNo, Trans::kNo, n, n, n, a.data(), n, b.data(), n, 0.0F, c.data(), n);
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
  for (int s = 0; s < kSizes; ++s) {
    meet(shared, processes * (s + 1));
    shared.gflops[s][process] = median_gflops(kSize[s]);
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
  std::printf(R"({"processes":%d,"gflops_256":%.1f,"gflops_1024":%.1f})"
              "\n",
              processes, mean(shared.gflops[0], processes), mean(shared.gflops[1], processes));
  return 0;
}
