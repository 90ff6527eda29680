#include "launcher/interruption.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <utility>

namespace hyperrun {
namespace {

constexpr int kStatus = 128 + SIGINT;
constexpr timespec kBetweenLooks{0, 50'000'000};

sigset_t interrupt() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

Interruption::Interruption(std::function<void()> last_words) {
  const sigset_t set = interrupt();
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  waiting_ = std::jthread([set, last_words = std::move(last_words)](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (sigtimedwait(&set, nullptr, &kBetweenLooks) != SIGINT) continue;
      last_words();
      std::fflush(nullptr);
      _exit(kStatus);
    }
  });
}

Interruption::~Interruption() {
  waiting_.request_stop();
  waiting_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace hyperrun
