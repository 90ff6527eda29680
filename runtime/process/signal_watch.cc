#include "runtime/process/signal_watch.h"

#include <array>

namespace hyperrun::process {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};

volatile std::sig_atomic_t first = 0;

void on_signal(int signal) {
  if (first == 0) {
    first = signal;
    return;
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

SignalWatch::SignalWatch() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (const int signal : kSignals) sigaction(signal, &action, &previous_.emplace_back());
}

SignalWatch::~SignalWatch() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &previous_[i], nullptr);
}

int SignalWatch::caught() { return first; }

}  // namespace hyperrun::process
