#include "tests/launcher/workspace.h"

#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "runtime/base/error.h"

namespace hyperrun::testing {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kSentences[] = {
    "The harbour lay still before the sun was up, and the keeper of the light walked slowly down the stone "
    "steps.",
    "He had seen many ships go out and fewer of them return, and he counted both in a book with a leather "
    "spine.",
    "\"A calm sea makes careless hands,\" he told the boy, who carried the oil and asked for the hundredth "
    "time why.",
    "They climbed the tower together; the wind, as it always did, met them at the door and wanted to come "
    "in.",
    "Below them the fishermen mended their nets, sang, quarrelled, and looked at the sky more often than at "
    "each other.",
    "In the evening the lamp was lit, and its beam went round and round until nobody noticed it any longer.",
};

std::set<std::string> shared_memory_files() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator("/dev/shm")) names.insert(entry.path().string());
  return names;
}

struct ProcessFiles {
  pid_t pid;
  std::string command_line, environment;  // separated by NUL
};

std::vector<ProcessFiles> all_processes() {
  std::vector<ProcessFiles> all;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr != name.data() + name.size())
      continue;
    all.push_back({pid, content(entry.path() / "cmdline"), content(entry.path() / "environ")});
  }
  return all;
}

bool has_word(const std::string& words, const std::string& word) {
  return (std::string(1, '\0') + words).find(std::string(1, '\0') + word + std::string(1, '\0')) !=
         std::string::npos;
}

}  // namespace

const std::string kJob = R"(name: "tiny"
supernode { devices: 2 hbm: "16 MiB" }
model { layers: 2 hidden: 64 heads: 4 kv_heads: 2 vocab: 320 sequence: 32 }
parallel { mesh { name: "dp" size: 2 } presets: "dp" }
data { corpus: "corpus.txt" }
training { steps: 6 batch: 8 lr: 3e-3 warmup_steps: 2 }
run { directory: "out" restarts: 0 }
)";

std::string edited(std::string text, const std::vector<Edit>& edits) {
  for (const Edit& edit : edits) {
    const std::size_t at = text.find(edit.from);
    HR_CHECK(at != std::string::npos && text.find(edit.from, at + 1) == std::string::npos, edit.from);
    text.replace(at, edit.from.size(), edit.to);
  }
  return text;
}

std::string english(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; text.size() < bytes; ++i) {
    // Steps of 1 to 5 through the six sentences give no period that a model could learn by heart.
    text += kSentences[(i * (1 + i / 7 % 5)) % std::size(kSentences)];
    text += i % 6 == 5 ? "\n" : " ";
  }
  text.resize(bytes);
  return text;
}

Command hyperrun(const std::vector<std::string>& arguments) {
  Command command{HYPERRUN_BINARY};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

Command mpirun(int ranks, const std::vector<std::string>& arguments,
               const std::vector<std::string>& options) {
  Command command{
      "env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "mpirun", "--oversubscribe",
      "-np", std::to_string(ranks)};
  // Ranks on other hosts get only named variables of the environment: suppressions of Open MPI's leaks, say,
  // or the kernels of OpenBLAS.
  for (const char* name :
       {"ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "OPENBLAS_CORETYPE"})
    if (std::getenv(name) != nullptr) command.insert(command.end(), {"-x", name});
  command.insert(command.end(), options.begin(), options.end());
  command.emplace_back(HYPERRUN_BINARY);
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

Command with_shared_memory(std::int64_t kib, const Command& command) {
  return with_disk("/dev/shm", kib, command);
}

Command with_disk(const std::string& folder, std::int64_t kib, const Command& command) {
  Command all{"unshare",
              "-m",
              "sh",
              "-c",
              "mount --make-rprivate / && mount -t tmpfs -o size=" + std::to_string(kib) + "k tmpfs " +
                  folder + " && exec \"$@\"",
              "sh"};
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

Workspace::Workspace() : shared_memory_before_(shared_memory_files()) {
  put_file(directory_ / "corpus.txt", english(50'000));
}

Workspace::~Workspace() {
  for (const pid_t pid : processes()) kill(pid, SIGKILL);
}

std::string Workspace::job(const std::string& text, std::string_view name) const {
  put_file(directory_ / name, text);
  return directory_ / name;
}

std::unique_ptr<Process> Workspace::start(Command command) const {
  // The variable marks all descendants of the run, see processes().
  return std::make_unique<Process>(std::move(command), directory_.path(),
                                   Environment{{"HYPERRUN_TEST", directory_.path()}});
}

Finished Workspace::run(Command command, Seconds limit) const {
  return start(std::move(command))->wait(limit);
}

Finished Workspace::run_on_job(const std::string& command, const std::string& text,
                               const std::vector<std::string>& options, Seconds limit) const {
  std::vector<std::string> arguments{command, job(text)};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return run(hyperrun(arguments), limit);
}

std::vector<nlohmann::json> Workspace::metrics(std::string_view directory, const char* key) const {
  std::ifstream file(directory_ / directory / "metrics.jsonl");
  std::vector<nlohmann::json> list;
  for (std::string line; std::getline(file, line);) {
    nlohmann::json json = nlohmann::json::parse(line);
    for (const char* clock : {"step_seconds", "time_ns"}) json.erase(clock);
    if (json.contains(key)) list.push_back(std::move(json));
  }
  return list;
}

std::vector<pid_t> Workspace::processes() const {
  const std::string mark = directory_.path();
  std::vector<pid_t> ours;
  for (const ProcessFiles& p : all_processes())
    if (p.pid != getpid() && (p.command_line + p.environment).find(mark) != std::string::npos)
      ours.push_back(p.pid);
  return ours;
}

void Workspace::kill_device(int rank) const {
  const pid_t process = device(rank);
  ASSERT_GT(process, 0) << "no process of rank " << rank;
  kill(process, SIGKILL);
}

pid_t Workspace::device(int rank) const {
  const std::string mark = directory_.path();
  for (const ProcessFiles& p : all_processes())
    if (p.command_line.starts_with(HYPERRUN_BINARY) &&
        (p.command_line + p.environment).find(mark) != std::string::npos &&
        has_word(p.environment, "OMPI_COMM_WORLD_RANK=" + std::to_string(rank)) &&
        !has_word(p.command_line, "controller"))
      return p.pid;
  return 0;
}

pid_t Workspace::controller() const {
  const std::string mark = directory_.path();
  for (const ProcessFiles& p : all_processes())
    if (p.command_line.find(mark) != std::string::npos && has_word(p.command_line, "controller"))
      return p.pid;
  return 0;
}

// New files that no living process maps; those of concurrent runs elsewhere do not count.
std::vector<std::string> Workspace::shared_memory() const {
  std::string maps;
  std::vector<std::string> left;
  for (const std::string& file : shared_memory_files())
    if (!shared_memory_before_.contains(file)) left.push_back(file);
  if (left.empty()) return left;
  for (const ProcessFiles& p : all_processes())
    maps += content(fs::path("/proc") / std::to_string(p.pid) / "maps");
  std::erase_if(left, [&](const std::string& file) { return maps.find(file) != std::string::npos; });
  return left;
}

::testing::AssertionResult Workspace::nothing_left(Seconds limit) const {
  if (eventually([this] { return processes().empty() && shared_memory().empty(); }, limit))
    return ::testing::AssertionSuccess();
  auto failure = ::testing::AssertionFailure() << "left behind:";
  for (const pid_t pid : processes())
    failure << "\n  process " << pid << " " << content(fs::path("/proc") / std::to_string(pid) / "cmdline");
  for (const std::string& file : shared_memory()) failure << "\n  " << file;
  return failure;
}

}  // namespace hyperrun::testing
