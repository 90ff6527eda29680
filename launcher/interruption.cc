#include "launcher/interruption.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr int kStatus = 128 + SIGINT;
constexpr char kInterrupted = 'i', kOver = 'o';

// A handler may do little more than write to a pipe; any thread may be the one that runs it.
volatile std::sig_atomic_t to_the_waiting = -1;
void tell(char what) {
  const ssize_t ignored = write(to_the_waiting, &what, 1);
  static_cast<void>(ignored);
}
void on_interrupt(int) { tell(kInterrupted); }

}  // namespace

Interruption::Interruption(std::function<void()> last_words) {
  std::array<int, 2> ends{};
  HR_CHECK(pipe(ends.data()) == 0, "no pipe for signals");
  read_ = ends[0];
  to_the_waiting = ends[1];
  waiting_ = std::thread([from = read_, last_words = std::move(last_words)] {
    char what = kOver;
    while (read(from, &what, 1) < 0) {
    }
    if (what != kInterrupted) return;
    last_words();
    std::fflush(nullptr);
    _exit(kStatus);
  });
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &before_);
}

Interruption::~Interruption() {
  sigaction(SIGINT, &before_, nullptr);
  tell(kOver);
  waiting_.join();
  close(to_the_waiting);
  close(read_);
}

}  // namespace hyperrun
