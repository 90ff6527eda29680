#include "runtime/calibrate/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>

#include "collectives/group.h"
#include "runtime/base/error.h"
#include "runtime/base/median.h"
#include "runtime/device/executor.h"

namespace hyperrun {
namespace {

constexpr int kEveryone = 31;  // key of the group of all devices; the plan's groups come first
constexpr int kFewestRounds = 3, kMostRounds = 101;
// The shortest and the longest stretch of a sample, in ns. A stretch should be long compared with a time
// slice of the operating system.
constexpr double kLeastStretch = 3e5, kMostStretch = 1e7;

double now() {
  return static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                 std::chrono::steady_clock::now().time_since_epoch())
                                 .count());
}

// Lets all devices meet, and exchange numbers in the page behind the points' operands.
class DeviceBarrier {
 public:
  DeviceBarrier(Arena& arena, World& world)
      : world_(world), board_(arena.view(kPointMemory, Bytes(4096)).data()) {
    std::vector<int> all(static_cast<std::size_t>(world.size()));
    std::iota(all.begin(), all.end(), 0);
    group_ = &world.make_group(kEveryone, all);
  }

  void wait_for_all() { world_.wait(*group_->start({.kind = Collective::kBarrier})); }

  double mean(double mine) { return reduced(mine, ReduceOp::kSum) / group_->size(); }
  double greatest(double mine) { return reduced(mine, ReduceOp::kMax); }

 private:
  double reduced(double mine, ReduceOp op) {
    const auto value = static_cast<float>(mine);
    std::memcpy(board_, &value, sizeof(value));
    world_.wait(
        *group_->start({.kind = Collective::kAllReduce, .op = op, .in = board_, .out = board_, .inner = 1}));
    float result = 0;
    std::memcpy(&result, board_, sizeof(result));
    return result;
  }

  World& world_;
  std::byte* board_;
  Group* group_ = nullptr;
};

class PointMeasurer {
 public:
  PointMeasurer(const Plan& plan, const DeviceMemory& memory, World& world, const MeasureOptions& options)
      : plan_(plan),
        arena_(memory.hbm),
        options_(options),
        barrier_(memory.hbm, world),
        executor_(plan, memory, world, feed_, {.thread_per_stream = options.thread_per_stream}) {}

  std::vector<Measurement> run() {
    const double start = now();
    clear();
    for (std::size_t p = 0; p < programs().size(); ++p) pilot(p);
    const double left = std::max(0.0, options_.seconds * 1e9 - (now() - start));
    const int rounds = choose_rounds(left);
    samples_.resize(programs().size());
    for (int round = 0; round < rounds; ++round) {
      if (options_.on_round) options_.on_round(round, rounds);
      clear();
      for (std::size_t p = 0; p < programs().size(); ++p) samples_[p].push_back(sample(p));
    }
    std::vector<Measurement> all;
    for (std::vector<double>& s : samples_) all.push_back({barrier_.mean(median(s)), rounds});
    return all;
  }

 private:
  const std::vector<Program>& programs() const { return plan_.roles[0].programs; }

  // Clears the operands, so that repeated points do not compute ever larger numbers.
  void clear() { std::memset(arena_.base(), 0, static_cast<std::size_t>(kPointMemory.value)); }

  // Measures one run of point `p`, after a first one that touches its memory.
  void pilot(std::size_t p) {
    executor_.run(p, {});
    barrier_.wait_for_all();
    const double from = now();
    executor_.run(p, {});
    once_.push_back(barrier_.greatest(now() - from));
  }

  // The most rounds for which stretches are long enough; the same on each device.
  int choose_rounds(double nanos) {
    nanos = barrier_.greatest(nanos);
    const auto fits = [&](double stretch) {
      double round = 0;
      for (const double once : once_) round += std::max(once, stretch);
      return nanos / round;
    };
    double stretch = kMostStretch;
    while (stretch > kLeastStretch && fits(stretch) < 9) stretch /= 1.5;
    for (const double once : once_) runs_.push_back(std::max(1, static_cast<int>(stretch / once)));
    return std::clamp(static_cast<int>(fits(stretch)), kFewestRounds, kMostRounds);
  }

  double sample(std::size_t p) {
    executor_.run(p, {});  // brings the program's memory into caches
    barrier_.wait_for_all();
    const double begin = now();
    barrier_.wait_for_all();
    const double middle = now();
    for (int r = 0; r < runs_[p]; ++r) executor_.run(p, {});
    barrier_.wait_for_all();
    const double nanos = (now() - middle) - (middle - begin);
    const auto instrs = static_cast<double>(programs()[p].instrs.size());
    return std::max(nanos, 1.0) / (instrs * runs_[p]);
  }

  const Plan& plan_;
  Arena& arena_;
  const MeasureOptions& options_;
  Feed feed_;
  DeviceBarrier barrier_;
  Executor executor_;
  std::vector<double> once_;  // by program: ns of one run
  std::vector<int> runs_;     // by program: number of runs in a sample
  std::vector<std::vector<double>> samples_;
};

}  // namespace

std::vector<Measurement> measure(const std::vector<Point>& points, const Mesh& mesh,
                                 const DeviceMemory& memory, World& world, const MeasureOptions& options) {
  const Plan plan = plan_of(points, mesh, kLeastStretch);
  return PointMeasurer(plan, memory, world, options).run();
}

}  // namespace hyperrun
