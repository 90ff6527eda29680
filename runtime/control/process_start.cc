#include "runtime/control/process_start.h"

#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "runtime/base/error.h"

namespace hyperrun::control {
namespace {

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

// The array of C strings that exec wants; valid as long as `strings` is.
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

struct SpawnPlan {
  SpawnPlan() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};
};

}  // namespace

int start_process(const std::vector<std::string>& argv, const Environment& environment,
                  const std::vector<Redirection>& redirections) {
  SpawnPlan plan;
  for (const Redirection& r : redirections) posix_spawn_file_actions_adddup2(&plan.files, r.ours, r.theirs);
  std::vector<std::string> arguments = argv, variables = merged(environment);
  pid_t pid = 0;
  const int failed = posix_spawnp(&pid, arguments[0].c_str(), &plan.files, &plan.attributes,
                                  pointers(arguments).data(), pointers(variables).data());
  if (failed != 0) throw cannot_run(argv[0], std::strerror(failed));
  return pid;
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

}  // namespace hyperrun::control
