#include "runtime/process/child_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/process/crash_trace.h"
#include "runtime/process/mpirun_talk.h"
#include "runtime/process/pidfd.h"
#include "runtime/process/process_start.h"

namespace hyperrun::process {
namespace {

constexpr std::size_t kTail = 4096;
constexpr std::chrono::seconds kLastWait{1};

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  void reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

void make_pipe(Descriptor& read_end, Descriptor& write_end) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Error(Code::kControl, std::string("no pipe: ") + std::strerror(errno));
  read_end = Descriptor(ends[0]);
  write_end = Descriptor(ends[1]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);  // our end alone: the program writes as usual
}

void write_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // our own output is gone; the run must not suffer for it
    data += n;
    size -= static_cast<std::size_t>(n);
  }
}

ExitStatus exit_status(int raw) {
  if (WIFSIGNALED(raw)) return {128 + WTERMSIG(raw), WTERMSIG(raw)};
  return {WEXITSTATUS(raw), 0};
}

}  // namespace

std::string ExitStatus::describe() const {
  if (signal != 0) return fmt::format("killed by signal {} ({})", signal, strsignal(signal));
  return "exit code " + std::to_string(code);
}

class ChildProcess::Impl {
 public:
  Impl(const std::vector<std::string>& argv, const Environment& environment, OnExit on_exit)
      : on_exit_(std::move(on_exit)) {
    Descriptor out_theirs, err_theirs;
    make_pipe(out_, out_theirs);
    make_pipe(err_, err_theirs);
    const Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
    pid_ = start_process(
        argv, environment,
        {{nothing.get(), STDIN_FILENO}, {out_theirs.get(), STDOUT_FILENO}, {err_theirs.get(), STDERR_FILENO}},
        Lifetime::kOurs);
    crash_trace_ = CrashTrace(pid_);
    alive_ = Descriptor(pidfd_open(pid_, 0));
    stop_ = Descriptor(eventfd(0, EFD_CLOEXEC));
    thread_ = std::thread([this] { watch(); });
  }

  ~Impl() {
    kill_group(SIGKILL);
    if (!wait_for(kLastWait)) eventfd_write(stop_.get(), 1);  // the child cannot be killed: leave it
    thread_.join();
  }

  int pid() const { return pid_; }

  void kill(int signal) {
    const std::lock_guard lock(mutex_);  // the child is not reaped yet: the pid is still its own
    if (status_) return;
    asked_ = true;
    ::kill(pid_, signal);
  }
  void kill_group(int signal) const {
    const std::lock_guard lock(mutex_);
    if (!status_) ::kill(-pid_, signal);
  }

  std::optional<ExitStatus> wait_for(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    ended_.wait_for(lock, time, [this] { return status_.has_value(); });
    return status_;
  }

  std::string stderr_tail() const {
    const std::lock_guard lock(mutex_);
    return tail_ + talk_.messages();
  }

 private:
  void watch() {
    for (bool running = true; running;) {
      std::array<pollfd, 4> fds{{{out_.get(), POLLIN, 0},
                                 {err_.get(), POLLIN, 0},
                                 {alive_.get(), POLLIN, 0},
                                 {stop_.get(), POLLIN, 0}}};
      if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) break;
      if (fds[0].revents != 0) forward(out_, STDOUT_FILENO);
      if (fds[1].revents != 0) forward(err_, STDERR_FILENO);
      running = fds[2].revents == 0 && fds[3].revents == 0;
      if (fds[3].revents != 0) return;
    }
    // Read the child's last output. Do not read to end of file: descendants may hold the pipe open.
    forward(out_, STDOUT_FILENO);
    forward(err_, STDERR_FILENO);
    complain(crash_trace_.rest());
    finish_talk();
    reap();
  }

  void forward(Descriptor& from, int to) {
    std::array<char, 16384> buffer{};
    while (from.get() >= 0) {
      const ssize_t n = ::read(from.get(), buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n <= 0) return from.reset();  // poll ignores a descriptor of -1
      const std::string_view said(buffer.data(), static_cast<std::size_t>(n));
      if (to == STDERR_FILENO)
        complain(asked_ ? crash_trace_.without(said) : std::string(said));
      else
        write_all(to, said.data(), said.size());
    }
  }

  void complain(const std::string& said) {
    std::string text;
    {
      const std::lock_guard lock(mutex_);
      text = talk_.without(said);
    }
    pass_on(text);
  }

  void finish_talk() {
    std::string text;
    {
      const std::lock_guard lock(mutex_);
      text = talk_.rest();
    }
    pass_on(text);
  }

  void pass_on(const std::string& text) {
    write_all(STDERR_FILENO, text.data(), text.size());
    const std::lock_guard lock(mutex_);
    tail_.append(text);
    if (tail_.size() > kTail) tail_.erase(0, tail_.size() - kTail);
  }

  void reap() {
    ExitStatus status;
    {
      const std::lock_guard lock(mutex_);
      int raw = 0;
      while (waitpid(pid_, &raw, 0) < 0 && errno == EINTR) {
      }
      status = exit_status(raw);
      status_ = status;
    }
    ended_.notify_all();
    if (on_exit_) on_exit_(status, stderr_tail());
  }

  OnExit on_exit_;
  int pid_ = 0;
  std::atomic<bool> asked_{false};  // we have signalled it, so that it may crash
  CrashTrace crash_trace_{0};       // used on the thread that reads
  Descriptor out_, err_, alive_, stop_;
  std::thread thread_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::optional<ExitStatus> status_;
  std::string tail_;
  MpirunTalk talk_;
};

ChildProcess::ChildProcess(const std::vector<std::string>& argv, const Environment& environment,
                           OnExit on_exit)
    : impl_(std::make_unique<Impl>(argv, environment, std::move(on_exit))) {}
ChildProcess::~ChildProcess() = default;
int ChildProcess::pid() const { return impl_->pid(); }
void ChildProcess::kill(int signal) { impl_->kill(signal); }
void ChildProcess::kill_group(int signal) { impl_->kill_group(signal); }
std::optional<ExitStatus> ChildProcess::wait_for(std::chrono::milliseconds time) {
  return impl_->wait_for(time);
}
std::string ChildProcess::stderr_tail() const { return impl_->stderr_tail(); }

}  // namespace hyperrun::process
