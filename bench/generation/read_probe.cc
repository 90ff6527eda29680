// The read rate of one core at this moment, for compare.py to put beside each round.
//
//   read_probe BYTES...   prints {"17039360":24.1,...}: GB/s over an array of each size, read again and again
//
// The rate depends on the number of places that a core reads at once. The probe takes the median over the
// passes of each pattern, and the best of these. An array that fits a cache is read from there.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr double kSecondsEach = 0.15;
constexpr std::size_t kLine = 64 / sizeof(std::uint64_t);  // words of a cache line

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Reads the array in blocks of kStreams runs of `run` words, side by side.
template <std::size_t kStreams>
std::uint64_t read(const std::vector<std::uint64_t>& words, std::size_t run) {
  std::uint64_t sum[kStreams][kLine] = {};
  const std::size_t block = kStreams * run;
  for (const std::uint64_t* at = words.data(); at + block <= words.data() + words.size(); at += block) {
    for (std::size_t i = 0; i < run; i += kLine) {
      for (std::size_t s = 0; s < kStreams; ++s) {
        const std::uint64_t* line = at + s * run + i;
        __builtin_prefetch(line + block);
        for (std::size_t w = 0; w < kLine; ++w) sum[s][w] += line[w];
      }
    }
  }
  std::uint64_t total = 0;
  for (const auto& of_stream : sum)
    for (const std::uint64_t part : of_stream) total += part;
  return total;
}

using Read = std::uint64_t (*)(const std::vector<std::uint64_t>&, std::size_t run);

double median_rate(Read read, const std::vector<std::uint64_t>& words, std::size_t run) {
  volatile std::uint64_t used = read(words, run);  // first touch
  std::vector<double> times;
  for (double begin = seconds(), from = begin; from - begin < kSecondsEach;) {
    used = read(words, run);
    const double to = seconds();
    times.push_back(to - from);
    from = to;
  }
  static_cast<void>(used);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return 1e-9 * static_cast<double>(words.size() * sizeof(std::uint64_t)) / *middle;
}

double best_rate(std::size_t bytes) {
  std::vector<std::uint64_t> words(bytes / sizeof(std::uint64_t));
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = i;
  double best = 0;
  for (const std::size_t run : {128U, 256U, 704U}) {  // words of a row of weights
    for (const Read pattern : {read<1>, read<4>, read<8>})
      best = std::max(best, median_rate(pattern, words, run));
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: read_probe BYTES...\n");
    return 2;
  }
  for (int i = 1; i < argc; ++i) {
    const long long bytes = std::atoll(argv[i]);
    if (bytes < 1 << 16) return 2;
    std::printf("%s\"%lld\":%.2f", i == 1 ? "{" : ",", bytes, best_rate(static_cast<std::size_t>(bytes)));
  }
  std::printf("}\n");
  return 0;
}
