#include "runtime/process/reach.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/process/launch.h"
#include "runtime/process/process_start.h"

namespace hyperrun::process {
namespace {

using Clock = std::chrono::steady_clock;

// A host that is being asked.
struct Question {
  int pid = -1, out = -1;
  std::string answer;
};

Question ask(const std::string& host, const std::vector<std::string>& mpirun_args) {
  LaunchSpec spec;
  spec.program = {"hostname"};
  spec.root = geteuid() == 0;
  spec.mpirun_args = {"--host", host};
  spec.mpirun_args.insert(spec.mpirun_args.end(), mpirun_args.begin(), mpirun_args.end());
  const LaunchCommand command = launch_command(spec);
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(Code::kControl, "no pipe");
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  Question question{.out = ends[0], .answer = {}};
  question.pid = start_process(command.argv, command.environment,
                               {{nothing, STDIN_FILENO}, {ends[1], STDOUT_FILENO}, {nothing, STDERR_FILENO}},
                               Lifetime::kOurs);
  close(nothing);
  close(ends[1]);
  return question;
}

// Reads what has come. Returns whether more may come.
bool read_some(Question& question) {
  std::array<char, 256> part{};
  const ssize_t n = read(question.out, part.data(), part.size());
  if (n < 0 && errno == EINTR) return true;
  if (n <= 0) return false;
  question.answer.append(part.data(), static_cast<std::size_t>(n));
  return question.answer.find('\n') == std::string::npos;  // mpirun may take its time to end
}

// Reads the answers to all questions until their ends or the deadline.
void read_answers(std::vector<Question>& questions, Clock::time_point deadline) {
  std::vector<pollfd> open;
  for (const Question& q : questions) open.push_back({q.out, POLLIN, 0});
  while (std::ranges::any_of(open, [](const pollfd& p) { return p.fd >= 0; })) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    const int ready = poll(open.data(), open.size(), static_cast<int>(std::max<long>(0, left.count())));
    if (ready == 0 || (ready < 0 && errno != EINTR)) return;
    for (std::size_t i = 0; ready > 0 && i < open.size(); ++i)
      if (open[i].revents != 0 && !read_some(questions[i])) open[i].fd = -1;
  }
}

// The processes that a process has begun, and theirs.
std::vector<int> descendants(int pid) {
  std::multimap<int, int> children;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    std::ifstream file(entry.path() / "stat");
    std::string stat;
    if (!std::getline(file, stat)) continue;
    const std::size_t name_end = stat.rfind(')');
    char state = 0;
    int parent = 0;
    if (name_end != std::string::npos &&
        std::sscanf(stat.c_str() + name_end + 1, " %c %d", &state, &parent) == 2)
      children.emplace(parent, std::atoi(stat.c_str()));
  }
  std::vector<int> all{pid};
  for (std::size_t i = 0; i < all.size(); ++i)
    for (auto [at, end] = children.equal_range(all[i]); at != end; ++at) all.push_back(at->second);
  all.erase(all.begin());
  return all;
}

// Ends what is left of the questions. mpirun removes its files when it ends by itself, which it does once it
// has its answer, or once the ssh that it waits for is gone: that has a group of its own, and would outlive
// mpirun.
void end_all(const std::vector<Question>& questions) {
  constexpr std::chrono::milliseconds kGrace{1000};
  const auto deadline = Clock::now() + kGrace;
  for (const Question& q : questions)
    if (q.answer.empty())
      for (const int pid : descendants(q.pid)) kill(pid, SIGKILL);
  for (const Question& q : questions) {
    while (waitpid(q.pid, nullptr, WNOHANG) == 0) {
      if (Clock::now() >= deadline) {
        for (const int pid : descendants(q.pid)) kill(pid, SIGKILL);
        kill(-q.pid, SIGKILL);
        waitpid(q.pid, nullptr, 0);
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    close(q.out);
  }
}

}  // namespace

std::vector<Reached> reach_hosts(const std::vector<HostLine>& hosts,
                                 const std::vector<std::string>& mpirun_args,
                                 std::chrono::milliseconds limit) {
  std::vector<Question> questions;
  try {
    for (const HostLine& host : hosts) questions.push_back(ask(host.host, mpirun_args));
  } catch (const Error&) {
    end_all(questions);
    throw;
  }
  read_answers(questions, Clock::now() + limit);
  end_all(questions);
  std::vector<Reached> reached;
  for (std::size_t h = 0; h < hosts.size(); ++h)
    reached.push_back({hosts[h], questions[h].answer.substr(0, questions[h].answer.find('\n'))});
  return reached;
}

}  // namespace hyperrun::process
