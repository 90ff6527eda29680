// dispatch_bench [DEVICES] [WORK_US] [SECONDS] [RANKS_A_GROUP]
//
// The rate of invocations that the controller dispatches, and the waits of devices for it. The controller and
// the scheduler run in one thread of this process, the simulated devices (simulated_devices.h) in another
// process. Between them are loopback TCP, the handshake and the protocol of a real run. Four programs with
// different shares run on every group, and each task takes the output of the one before on its group. WORK_US
// is a device's time for an invocation; 0 measures the highest rate. An invocation to one device is one
// dispatch.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "bench/control/simulated_devices.h"
#include "runtime/control/auth.h"
#include "runtime/control/clock.h"
#include "runtime/control/controller.h"
#include "runtime/tasks/task_driver.h"

namespace hyperrun::bench {
namespace {

using namespace hyperrun::control;

constexpr std::int32_t kWindow = 4;  // most tasks of a device
constexpr double kWarmUp = 1.5;      // seconds

struct Settings {
  std::int32_t devices = 1024;
  std::int64_t work_us = 0;
  double seconds = 6;
  std::int32_t ranks_a_group = 1;
};

tasks::DeviceGroups groups_of(const Settings& settings) {
  tasks::DeviceGroups groups(settings.devices);
  for (std::int32_t r = 0; r < settings.devices; r += settings.ranks_a_group) {
    std::vector<std::int32_t> ranks;
    for (std::int32_t i = r; i < std::min(settings.devices, r + settings.ranks_a_group); ++i)
      ranks.push_back(i);
    groups.add(std::move(ranks));
  }
  return groups;
}

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Keeps a chain of tasks before every group until the time is over.
class Chains : public tasks::TaskDriver {
 public:
  explicit Chains(const Settings& settings)
      : tasks::TaskDriver(groups_of(settings),
                          {.scheduling = tasks::Scheduling::kDynamic, .window = kWindow}),
        settings_(settings),
        last_(static_cast<std::size_t>(scheduler().groups().size()), -1) {
    for (int p = 0; p < 4; ++p) scheduler().add_program({.name = "p" + std::to_string(p), .share = 1.0 + p});
    for (tasks::GroupId g = 1; g < scheduler().groups().size(); ++g) scheduler().add_place({g});
  }

  std::vector<Assignment> on_ready(const std::vector<tasks::DeviceInfo>&) override {
    start_ = Clock::now();
    for (int i = 0; i < kWindow + 2; ++i)
      for (tasks::GroupId g = 1; g < scheduler().groups().size(); ++g) submit(g);
    return {};
  }

  std::int64_t dispatched = 0;  // between the end of the warm-up and the end of the time
  double wall = 0, cpu = 0;     // seconds in the same time

 protected:
  tasks::Invocation invocation_of(tasks::TaskId, const tasks::TaskSpec&, tasks::GroupId) override {
    return {};
  }

  void on_task_done(tasks::TaskId, const tasks::TaskSpec& task,
                    std::span<const tasks::InvocationDone> results) override {
    const Clock::time_point now = Clock::now();
    const double since = std::chrono::duration<double>(now - start_).count();
    if (since > settings_.seconds) return;
    if (since > kWarmUp) {
      if (dispatched == 0) warm_ = now, warm_cpu_ = cpu_seconds();
      dispatched += std::ssize(results);
      if (dispatched % 1024 < std::ssize(results)) cpu = cpu_seconds() - warm_cpu_;
      wall = std::chrono::duration<double>(now - warm_).count();
    }
    submit(task.place + 1);
  }

 private:
  void submit(tasks::GroupId g) {
    tasks::FutureId& last = last_[static_cast<std::size_t>(g)];
    const auto program = static_cast<tasks::ProgramIndex>(submitted_ % 4);
    tasks::TaskSpec task{program, g - 1, submitted_++, 0, {}, {}};
    if (last >= 0) task.inputs.push_back(last);
    last = scheduler().add_future({"", Bytes(1), 1});
    task.outputs.push_back(last);
    scheduler().submit(std::move(task));
  }

  Settings settings_;
  std::vector<tasks::FutureId> last_;  // of each group's chain
  std::int64_t submitted_ = 0;
  Clock::time_point start_, warm_;
  double warm_cpu_ = 0;
};

void print(const Settings& settings, const Chains& driver, const DevicesResult& devices) {
  const auto dispatched = static_cast<double>(driver.dispatched);
  std::printf("%d devices, groups of %d, %lld us of work an invocation\n", settings.devices,
              settings.ranks_a_group, static_cast<long long>(settings.work_us));
  std::printf("  dispatches/s           %10.0f\n", dispatched / driver.wall);
  std::printf("  controller's thread    %10.2f us of CPU a dispatch, %.0f %% of a core\n",
              1e6 * driver.cpu / dispatched, 100 * driver.cpu / driver.wall);
  if (settings.work_us == 0) return;
  std::printf("  began late             %10lld of %lld invocations\n", static_cast<long long>(devices.waited),
              static_cast<long long>(devices.invocations));
  std::printf("  devices at work        %10.3f %% of their time, the one that waited most %.3f %%\n",
              100 * devices.busy_seconds / (devices.busy_seconds + devices.idle_seconds),
              100 - 100 * devices.worst_device_idle);
  std::printf("  longest wait           %10.2f ms\n", 1e3 * devices.longest_wait_seconds);
}

// Runs in the devices' process: the controller's address comes by one pipe, the result goes by the other.
int be_devices(const Settings& settings, const std::string& secret, int from, int to) {
  std::array<char, 64> address{};
  if (read(from, address.data(), address.size() - 1) <= 0) return 1;
  try {
    const DevicesResult result =
        run_devices({address.data(), secret, settings.devices, 1000 * settings.work_us, kWarmUp});
    return write(to, &result, sizeof result) == sizeof result ? 0 : 1;
  } catch (const Error& e) {
    std::fprintf(stderr, "devices: %s\n", e.what());
    return 1;
  }
}

int run(const Settings& settings) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  const std::string secret = make_secret();
  std::array<int, 2> address_pipe{}, result_pipe{};
  if (pipe(address_pipe.data()) != 0 || pipe(result_pipe.data()) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) _exit(be_devices(settings, secret, address_pipe[0], result_pipe[1]));
  close(result_pipe[1]);
  ControllerOptions options;
  options.devices = settings.devices;
  options.secret = secret;
  options.version = "bench";
  options.window = kWindow;
  options.heartbeat_seconds = 5;
  Controller controller(options);
  if (write(address_pipe[1], controller.address().data(), controller.address().size()) <= 0) return 1;
  Chains driver(settings);
  const Outcome outcome = controller.run(driver);
  DevicesResult devices;
  const bool told = read(result_pipe[0], &devices, sizeof devices) == sizeof devices;
  waitpid(child, nullptr, 0);
  if (!outcome.ok()) return std::fprintf(stderr, "%s\n", outcome.reason().c_str()), 1;
  if (told) print(settings, driver, devices);
  return told ? 0 : 1;
}

}  // namespace
}  // namespace hyperrun::bench

int main(int argc, char** argv) {
  hyperrun::bench::Settings settings;
  CLI::App app("How many invocations a second one controller hands out, to simulated devices.");
  app.add_option("devices", settings.devices)->check(CLI::Range(1, 1 << 16))->capture_default_str();
  app.add_option("work_us", settings.work_us, "of an invocation; 0: none")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{60'000'000}))
      ->capture_default_str();
  app.add_option("seconds", settings.seconds)->check(CLI::Range(0.1, 3600.0))->capture_default_str();
  app.add_option("ranks_a_group", settings.ranks_a_group)
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (settings.devices % settings.ranks_a_group != 0)
    return std::fprintf(stderr, "%d devices are no groups of %d\n", settings.devices, settings.ranks_a_group),
           2;
  return hyperrun::bench::run(settings);
}
