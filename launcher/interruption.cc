#include "launcher/interruption.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr int kStatus = 128 + SIGINT;
constexpr char kInterrupted = 'i', kFinished = 'f';

// The write end of a pipe to the waiting thread. A signal handler may do little more than write to a pipe,
// and any thread may run it.
volatile std::sig_atomic_t write_end = -1;
void wake_thread(char reason) {
  const ssize_t ignored = write(write_end, &reason, 1);
  static_cast<void>(ignored);
}
void on_interrupt(int) { wake_thread(kInterrupted); }

}  // namespace

Interruption::Interruption(std::function<void()> last_words) {
  std::array<int, 2> ends{};
  HR_CHECK(pipe(ends.data()) == 0, "no pipe for signals");
  read_end_ = ends[0];
  write_end = ends[1];
  thread_ = std::thread([from = read_end_, last_words = std::move(last_words)] {
    char reason = kFinished;
    while (read(from, &reason, 1) < 0) {
    }
    if (reason != kInterrupted) return;
    last_words();
    std::fflush(nullptr);
    _exit(kStatus);
  });
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &previous_);
}

Interruption::~Interruption() {
  sigaction(SIGINT, &previous_, nullptr);
  wake_thread(kFinished);
  thread_.join();
  close(write_end);
  close(read_end_);
}

}  // namespace hyperrun
