// control_actor device RANK WORLD BEHAVIOUR [MACHINE]   a device; BEHAVIOUR is what it
//                                                      does wrong at step 5 (deaf, linger: at the end), or
//                                                      before it joins: exit-early, die-early, stop-early,
//                                                      sleep-early; unready: it never asks for work
// control_actor launcher WORLD BEHAVIOUR...            starts devices as mpirun does, one behaviour a rank
// control_actor controller WORLD [dies]                tells its address to its parent, runs for ever or
//                                                      dies when step 4 is done
// control_actor parent                                 has a child process that sleeps
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/flags.h"
#include "runtime/control/controller.h"
#include "runtime/control/device_link.h"
#include "runtime/process/child_process.h"
#include "runtime/process/process_start.h"
#include "runtime/process/spawn.h"

namespace hyperrun::control {
namespace {

constexpr std::int64_t kWhen = 5;

[[noreturn]] void sleep_for_ever() {
  for (;;) pause();
}

void misbehave(const std::string& behaviour, std::int32_t rank, DeviceLink& link) {
  if (behaviour == "die") raise(SIGKILL);
  if (behaviour == "stop") raise(SIGSTOP);
  if (behaviour == "stuck") sleep_for_ever();
  if (behaviour == "fail") throw Error(Code::kNotFinite, "the loss is nan").at("instruction 12");
  if (behaviour == "consequence") throw Error(Code::kDeviceLost, "a peer does not answer");
  if (behaviour == "huge") link.report(rank, {105, {}, std::string(std::size_t{4} << 20, 'x')});
}

void serve(DeviceLink& link, std::int32_t rank, const std::string& behaviour) {
  DeviceStatus& status = link.status(rank);
  for (;;) {
    const tasks::Command command = link.next(rank);
    if (std::holds_alternative<tasks::Shutdown>(command)) {
      if (behaviour == "linger") sleep_for_ever();
      return link.close();
    }
    const auto* invocation = std::get_if<tasks::Invocation>(&command);
    if (invocation == nullptr) continue;
    status.last_instruction = -1;
    status.invocation = invocation->id;
    status.last_instruction = 40 + rank;
    if (invocation->step == kWhen) misbehave(behaviour, rank, link);
    const double value = 1000.0 * rank +
                         static_cast<double>(std::get<std::int64_t>(invocation->scalars.at("offset"))) +
                         0.5 * std::get<double>(invocation->scalars.at("lr"));
    link.report(rank, {invocation->id, {{"answer", value}}, "report"});
  }
}

int device(std::int32_t rank, std::int32_t world, const std::string& behaviour, const std::string& machine) {
  if (behaviour == "exit-early") return std::fprintf(stderr, "cannot start: no such library\n"), 3;
  if (behaviour == "die-early") raise(SIGKILL);
  if (behaviour == "stop-early") raise(SIGSTOP);
  if (behaviour == "sleep-early") sleep_for_ever();
  DeviceLinkOptions options;
  options.controller = flags().controller;
  options.secret = flags().secret;
  options.rank = rank;
  options.world_size = world;
  options.version = "test";
  options.connect_seconds = 10;
  options.machine = machine;
  options.handle_signals = true;
  options.place = [](int) { return std::string("train of step 42"); };
  try {
    DeviceLink link(options);
    if (behaviour == "unready") sleep_for_ever();
    try {
      serve(link, rank, behaviour);
    } catch (const Error& e) {
      if (behaviour == "deaf") sleep_for_ever();
      link.fail(rank, e);
      std::fprintf(stderr, "%s\n", e.what());
      _exit(static_cast<int>(exit_code(e.code())));
    }
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return static_cast<int>(exit_code(e.code()));
  }
  return 0;
}

// Behaves like mpirun in the points that matter: a rank knows its number by the environment. A second after
// one was killed the others are told to end, and soon made to. It ends when its ranks have, and not before (a
// stopped rank holds it up).
int launcher(int count, char** arguments) {
  const std::string world = arguments[0];
  std::vector<int> pids;
  for (int i = 1; i < count; ++i)
    pids.push_back(
        process::start_process({"/proc/self/exe", "device", std::to_string(i - 1), world, arguments[i]},
                               {{"OMPI_COMM_WORLD_RANK", std::to_string(i - 1)}}, {}));
  std::printf("launcher has %d ranks\n", count - 1);
  std::fflush(stdout);
  int code = 0, raw = 0;
  bool ending = false;
  for (int ended = 0; (ended = wait(&raw)) > 0;) {
    std::erase(pids, ended);
    if (code == 0) code = WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw);
    if (!WIFSIGNALED(raw) || std::exchange(ending, true)) continue;
    sleep(1);
    for (const int pid : pids) kill(pid, SIGTERM);
    usleep(300'000);
    for (const int pid : pids) kill(pid, SIGKILL);
  }
  return code;
}

[[noreturn]] void parent() {
  const process::ChildProcess child({"sleep", "60"}, {{"OMPI_COMM_WORLD_RANK", "0"}});
  sleep_for_ever();
}

class Endless : public tasks::Driver {
 public:
  explicit Endless(bool dies) : dies_(dies) {}

  std::vector<Assignment> on_ready(const std::vector<tasks::DeviceInfo>&) override { return {}; }
  std::optional<tasks::Invocation> next_invocation() override {
    const std::int64_t n = next_++;
    return tasks::Invocation{n, 0, n, {{"offset", n}, {"lr", 0.0}}};
  }
  void on_done(const tasks::Invocation& invocation, std::span<const tasks::InvocationDone>) override {
    if (dies_ && invocation.step == kWhen - 1) raise(SIGKILL);
  }

 private:
  bool dies_;
  std::int64_t next_ = 0;
};

int controller(std::int32_t world, bool dies) {
  ControllerOptions options;
  options.devices = world;
  options.secret = flags().secret;
  options.version = "test";
  options.handle_signals = true;
  Controller controller(options);
  process::tell_address(controller.address());
  Endless driver(dies);
  return controller.run(driver).exit_status();
}

}  // namespace
}  // namespace hyperrun::control

int main(int argc, char** argv) {
  alarm(300);  // an actor left by a failed test must end, and not hold up readers of its output
  const std::string role = argc > 2 ? argv[1] : "";
  if (role == "device" && argc >= 5)
    return hyperrun::control::device(std::atoi(argv[2]), std::atoi(argv[3]), argv[4],
                                     argc > 5 ? argv[5] : "");
  if (argc == 2 && std::string(argv[1]) == "parent") hyperrun::control::parent();
  if (role == "launcher") return hyperrun::control::launcher(argc - 2, argv + 2);
  if (role == "controller") return hyperrun::control::controller(std::atoi(argv[2]), argc > 3);
  return 2;
}
