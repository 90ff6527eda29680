#include "tests/launcher/process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <ostream>

#include "runtime/base/error.h"

namespace hyperrun::testing {
namespace {

int memory_file(const char* name) {
  const int fd = memfd_create(name, MFD_CLOEXEC);
  HR_CHECK(fd >= 0);
  return fd;
}

std::string content(int fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    // At an offset: the child's end shares the position.
    const ssize_t n = pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(text.size()));
    if (n <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

[[noreturn]] void become(const Command& command, const std::filesystem::path& directory,
                         const Environment& environment, int out, int err) {
  setpgid(0, 0);
  const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  for (const auto& [key, value] : environment) setenv(key.c_str(), value.c_str(), 1);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  if (chdir(directory.c_str()) == 0) execvp(argv[0], argv.data());
  _exit(127);
}

}  // namespace

std::ostream& operator<<(std::ostream& stream, const Finished& f) {
  stream << "command:";
  for (const std::string& word : f.command) stream << ' ' << word;
  stream << "\nstatus " << f.status << (f.timed_out ? ", timed out" : "") << " after " << f.time.count()
         << " s";
  return stream << "\n--- standard output\n" << f.out << "\n--- standard error\n" << f.err << "\n---";
}

Process::Process(Command command, const std::filesystem::path& directory, const Environment& environment)
    : command_(std::move(command)),
      start_(std::chrono::steady_clock::now()),
      out_(memory_file("stdout")),
      err_(memory_file("stderr")) {
  pid_ = fork();
  HR_CHECK(pid_ >= 0);
  if (pid_ == 0) become(command_, directory, environment, out_, err_);
  setpgid(pid_, pid_);  // here as well: whoever comes first
}

Process::~Process() {
  if (!ended_) {
    signal_group(SIGKILL);
    waitpid(pid_, &raw_status_, 0);
  }
  close(out_);
  close(err_);
}

void Process::signal(int number) const { kill(pid_, number); }
void Process::signal_group(int number) const { kill(-pid_, number); }
std::string Process::out() const { return content(out_); }
std::string Process::err() const { return content(err_); }

bool Process::ended_within(Seconds limit) {
  return eventually([this] { return ended_ = ended_ || waitpid(pid_, &raw_status_, WNOHANG) == pid_; },
                    limit);
}

Finished Process::wait(Seconds limit) {
  Finished f;
  f.timed_out = !ended_within(limit);
  if (f.timed_out) {
    signal_group(SIGKILL);
    waitpid(pid_, &raw_status_, 0);
    ended_ = true;
  }
  f.time = std::chrono::steady_clock::now() - start_;
  f.command = command_;
  f.status = WIFSIGNALED(raw_status_) ? 128 + WTERMSIG(raw_status_) : WEXITSTATUS(raw_status_);
  f.out = out();
  f.err = err();
  return f;
}

}  // namespace hyperrun::testing
