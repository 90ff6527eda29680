#include "runtime/process/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/process/pidfd.h"
#include "runtime/process/process_start.h"

namespace hyperrun::process {
namespace {

constexpr int kTheirFd =
    3;  // the first after the standard descriptors; nothing else is open in the new program

std::string own_binary() {
  std::array<char, 4096> path{};
  const ssize_t n = readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (n <= 0) throw Error(Code::kControl, "cannot find this very program (/proc/self/exe)");
  return {path.data(), static_cast<std::size_t>(n)};
}

// Reads one line from the pipe; empty if none comes in time.
std::string read_line(int fd, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::string line;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd p{fd, POLLIN, 0};
    if (left <= 0 || (poll(&p, 1, static_cast<int>(left)) <= 0 && errno != EINTR)) return "";
    std::array<char, 512> buffer{};
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return "";
    line.append(buffer.data(), static_cast<std::size_t>(n));
    if (line.back() == '\n') return line.substr(0, line.size() - 1);
  }
}

}  // namespace

SpawnedController spawn_controller_process(std::vector<std::string> argv, const Environment& environment,
                                           double seconds) {
  HR_CHECK(!argv.empty());
  if (argv[0].empty()) argv[0] = own_binary();
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Error(Code::kControl, std::string("no pipe: ") + std::strerror(errno));
  // dup2 onto itself would keep close-on-exec, so the numbers must differ.
  const int write_end = fcntl(ends[1], F_DUPFD_CLOEXEC, kTheirFd + 1);
  close(ends[1]);
  Environment all = environment;
  all.emplace_back(kAddressFd, std::to_string(kTheirFd));
  SpawnedController spawned;
  try {
    spawned.pid = start_process(argv, all, {{write_end, kTheirFd}});
  } catch (...) {
    close(write_end);
    close(ends[0]);
    throw;
  }
  close(write_end);
  spawned.address = read_line(ends[0], seconds);
  close(ends[0]);
  if (!spawned.address.empty()) return spawned;
  spawned.status = wait_for_controller(spawned, 0.2);
  if (spawned.status > 0) return spawned;
  kill(-spawned.pid, SIGKILL);
  wait_for_controller(spawned, 1);
  throw Error(Code::kControl, "the controller process did not start (" + argv[0] + ")")
      .fix("see what it said above");
}

void tell_address(const std::string& address) {
  const char* text = std::getenv(kAddressFd);
  int fd = -1;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), fd);
  const std::string line = address + "\n";
  if (fd < 0 || write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    throw Error(Code::kControl, "nobody waits for this controller's address")
        .fix("this command is for hyperrun itself");
  close(fd);
}

int wait_for_controller(const SpawnedController& controller, double seconds) {
  const int fd = pidfd_open(controller.pid, 0);
  if (fd < 0) return -1;
  pollfd p{fd, POLLIN, 0};
  const int ready = poll(&p, 1, static_cast<int>(seconds * 1000));
  close(fd);
  int raw = 0;
  if (ready <= 0 || waitpid(controller.pid, &raw, WNOHANG) != controller.pid) return -1;
  return WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw);
}

}  // namespace hyperrun::process
