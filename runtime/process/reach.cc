#include "runtime/process/reach.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
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

// Reads the answer until its end or the deadline.
void read_answer(Question& question, Clock::time_point deadline) {
  std::array<char, 256> part{};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd ready{question.out, POLLIN, 0};
    if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) <= 0) return;
    const ssize_t n = read(question.out, part.data(), part.size());
    if (n <= 0) return;
    question.answer.append(part.data(), static_cast<std::size_t>(n));
    if (question.answer.find('\n') != std::string::npos) return;  // mpirun may take its time to end
  }
}

void end(const Question& question) {
  kill(-question.pid, SIGKILL);
  waitpid(question.pid, nullptr, 0);
  close(question.out);
}

}  // namespace

std::vector<Reached> reach_hosts(const std::vector<HostLine>& hosts,
                                 const std::vector<std::string>& mpirun_args,
                                 std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  std::vector<Question> questions;
  for (const HostLine& host : hosts) questions.push_back(ask(host.host, mpirun_args));
  std::vector<Reached> reached;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    read_answer(questions[h], deadline);
    end(questions[h]);
    reached.push_back({hosts[h], questions[h].answer.substr(0, questions[h].answer.find('\n'))});
  }
  return reached;
}

}  // namespace hyperrun::process
