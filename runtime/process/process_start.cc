#include "runtime/process/process_start.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "runtime/base/error.h"

namespace hyperrun::process {
namespace {

constexpr int kBeyondRedirections = 16;

std::vector<std::string> merged(const Environment& added) {
  std::vector<std::string> all;
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string entry = *e;
    bool replaced = false;
    const std::string_view key_of_entry = std::string_view(entry).substr(0, entry.find('='));
    for (const auto& [key, value] : added) replaced = replaced || key_of_entry == key;
    if (!replaced) all.push_back(entry);
  }
  for (const auto& [key, value] : added) all.push_back(key + "=" + value);
  return all;
}

// The array of C strings for exec. It is valid as long as `strings`.
std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> all;
  all.reserve(strings.size() + 1);
  for (std::string& s : strings) all.push_back(s.data());
  all.push_back(nullptr);
  return all;
}

Error cannot_run(const std::string& name, const std::string& why) {
  return Error(Code::kMpi, "cannot run " + name + ": " + why)
      .fix("install it (Debian: openmpi-bin), or add its folder to PATH");
}

// The code of a new process before it becomes the program. Between fork and exec only functions that are safe
// in a signal handler are allowed, so everything is prepared before.
struct Start {
  char* const* argv;
  char* const* environment;
  const std::vector<Redirection>& redirections;
  Lifetime lifetime;
  pid_t parent;
  int complaints;  // pipe for errno if exec fails

  [[noreturn]] void run() const {
    setpgid(0, 0);
    if (lifetime == Lifetime::kOurs) {
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (getppid() != parent) _exit(128 + SIGTERM);  // the parent has ended already: no signal will come
    }
    for (const Redirection& r : redirections) dup2(r.ours, r.theirs);
    default_signals();
    execvpe(argv[0], argv, environment);
    const int why = errno;
    [[maybe_unused]] const ssize_t told = write(complaints, &why, sizeof why);
    _exit(127);
  }

  static void default_signals() {
    for (int s = 1; s < NSIG; ++s) std::signal(s, SIG_DFL);  // refused for signals that have no other
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
  }
};

// None of our signal handlers may run in the new process, which shares our descriptors at first.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

// Returns errno of a failed exec; 0 if a successful exec closed the pipe.
int exec_error(int fd) {
  int why = 0;
  ssize_t n = 0;
  do n = read(fd, &why, sizeof why);
  while (n < 0 && errno == EINTR);
  return n == sizeof why ? why : 0;
}

}  // namespace

int start_process(const std::vector<std::string>& argv, const Environment& environment,
                  const std::vector<Redirection>& redirections, Lifetime lifetime) {
  std::vector<std::string> arguments = argv, variables = merged(environment);
  const std::vector<char*> argument_pointers = pointers(arguments), variable_pointers = pointers(variables);
  std::array<int, 2> complaints{};
  if (pipe2(complaints.data(), O_CLOEXEC) != 0) throw cannot_run(argv[0], std::strerror(errno));
  const int write_end = fcntl(complaints[1], F_DUPFD_CLOEXEC, kBeyondRedirections);
  close(complaints[1]);
  const Start start{
      argument_pointers.data(), variable_pointers.data(), redirections, lifetime, getpid(), write_end};
  pid_t pid = -1;
  {
    const SignalsBlocked blocked;
    pid = fork();
    if (pid == 0) start.run();
  }
  const int failed = pid < 0 ? errno : 0;
  close(write_end);
  const int refused = failed != 0 ? failed : exec_error(complaints[0]);
  close(complaints[0]);
  if (refused == 0) return pid;
  if (pid > 0) waitpid(pid, nullptr, 0);
  throw cannot_run(argv[0], std::strerror(refused));
}

void become_process(const std::vector<std::string>& argv, const Environment& environment) {
  std::vector<std::string> arguments = argv, variables = merged(environment);
  execvpe(arguments[0].c_str(), pointers(arguments).data(), pointers(variables).data());
  throw cannot_run(argv[0], std::strerror(errno));
}

void require_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/bin:/usr/bin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((std::filesystem::path(folder) / name).c_str(), X_OK) == 0) return;
  throw cannot_run(name, "no folder in PATH has it");
}

}  // namespace hyperrun::process
