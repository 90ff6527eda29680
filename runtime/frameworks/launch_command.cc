#include "runtime/frameworks/launch_command.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "runtime/base/error.h"

namespace hyperrun::frameworks {
namespace {

using shell::Text;

// Flags of launchers that say how many processes there are.
struct LauncherFlag {
  std::string_view name, setting;
};
constexpr std::array kLauncherFlags{LauncherFlag{"nnodes", "launcher nnodes"},
                                    LauncherFlag{"nproc-per-node", "launcher per-node"},
                                    LauncherFlag{"num-nodes", "launcher nnodes"},
                                    LauncherFlag{"num-gpus", "launcher per-node"},
                                    LauncherFlag{"nodes", "launcher nnodes"},
                                    LauncherFlag{"N", "launcher nnodes"},
                                    LauncherFlag{"ntasks-per-node", "launcher per-node"},
                                    LauncherFlag{"gpus-per-node", "launcher per-node"},
                                    LauncherFlag{"num-machines", "launcher nnodes"},
                                    LauncherFlag{"num-processes", "launcher world"},
                                    LauncherFlag{"np", "launcher world"},
                                    LauncherFlag{"n", "launcher world"},
                                    LauncherFlag{"ntasks", "launcher world"},
                                    LauncherFlag{"worker-num", "launcher world"},
                                    LauncherFlag{"local-worker-num", "launcher per-node"}};

bool is_flag(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9') && word[1] != '.';
}

std::string flag_name(std::string_view word) {
  while (word.starts_with('-')) word.remove_prefix(1);
  std::string name(word.substr(0, word.find('=')));
  std::ranges::replace(name, '_', '-');
  return name;
}

class CommandReader {
 public:
  CommandReader(const shell::Script& script, const std::vector<Text>& words)
      : script_(script), words_(words) {}

  std::vector<Setting> all() {
    const std::size_t program = place_of_program();
    std::vector<Setting> settings;
    for (std::size_t i = 0; i < words_.size();) {
      const std::string& word = words_[i].chars;
      if (!is_flag(word)) {
        ++i;
        continue;
      }
      take_flag(i, program, settings);
    }
    return settings;
  }

 private:
  // The word behind which flags belong to the training and not to its launcher: "pretrain_gpt.py".
  std::size_t place_of_program() const {
    std::size_t found = words_.size();
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::string& w = words_[i].chars;
      if (w.ends_with(".py")) found = i;
      if (w == "-m" && i + 1 < words_.size() && !words_[i + 1].chars.starts_with("torch.distributed"))
        found = i + 1;
      if (found < words_.size() && i > found && w.starts_with("--")) break;
    }
    if (found < words_.size()) return found;
    // Arguments without a program are those of the training.
    for (std::size_t i = 0; i < words_.size(); ++i)
      if (shell::has_mark(words_[i].chars) && !is_flag(words_[i].chars) && i > 0 &&
          !is_flag(words_[i - 1].chars))
        return i;
    return 0;
  }

  void take_flag(std::size_t& i, std::size_t program, std::vector<Setting>& settings) const {
    Setting s;
    const Text& word = words_[i];
    s.name = flag_name(word.chars);
    const bool of_launcher = i < program;
    std::string first;  // word of the value
    s.place = script_.sources.place(word.places.front());
    note_marks(word, s);
    const std::size_t equals = word.chars.find('=');
    if (equals != std::string::npos) {
      s.value = shell::without_marks(word.chars.substr(equals + 1));
      s.has_value = true;
    }
    for (++i; i < words_.size() && !is_flag(words_[i].chars) && i != program; ++i) {
      // A backslash within quotes is left over from a line that goes on.
      if (words_[i].chars == "\\") continue;
      if (equals != std::string::npos) break;
      if (s.has_value) s.value += ' ';
      s.value += shell::without_marks(words_[i].chars);
      if (first.empty()) first = s.value;
      s.has_value = true;
      note_marks(words_[i], s);
    }
    if (of_launcher) {
      const auto* row = std::ranges::find(kLauncherFlags, s.name, &LauncherFlag::name);
      s.name = row != kLauncherFlags.end() && s.has_value ? std::string(row->setting) : "launcher " + s.name;
      if (row != kLauncherFlags.end() && !first.empty()) s.value = first;
    }
    settings.push_back(std::move(s));
  }

  static void note_marks(const Text& word, Setting& s) {
    for (std::string& what : shell::marks_of(word.chars)) s.unknown.push_back(std::move(what));
  }

  const shell::Script& script_;
  const std::vector<Text>& words_;
};

// A command with one telling flag trains.
constexpr int kTraining = 1000;
constexpr std::size_t kMostOtherTrainings = 20;

// How much a command looks like one that trains.
int score(const shell::StartedCommand& command) {
  static constexpr std::array<std::string_view, 9> kTelling{
      "num-layers", "hidden-size", "micro-batch-size", "global-batch-size",  "tensor-model-parallel-size",
      "seq-length", "lr",          "train-iters",      "num-attention-heads"};
  int points = 0;
  for (const Text& word : command.words) {
    if (word.chars.starts_with("--")) {
      ++points;
      if (std::ranges::find(kTelling, flag_name(word.chars)) != kTelling.end()) points += kTraining;
    }
    if (word.chars.find("pretrain") != std::string::npos) points += 100;
    if (word.chars.find("convert") != std::string::npos || word.chars.find("preprocess") != std::string::npos)
      points -= 500;
  }
  return points;
}

// Flags of "#SBATCH --nodes=8" lines, for scripts whose launcher does not say how many processes there are.
std::map<std::string, std::string> directives_of(std::string_view content) {
  std::map<std::string, std::string> found;
  for (std::size_t at = content.find("#SBATCH"); at != std::string_view::npos;
       at = content.find("#SBATCH", at + 1)) {
    if (at > 0 && content[at - 1] != '\n') continue;
    std::string_view line = content.substr(at + 7, content.find('\n', at) - at - 7);
    line = line.substr(0, line.find(" #"));
    const std::size_t dash = line.find('-');
    if (dash == std::string_view::npos) continue;
    line.remove_prefix(dash);
    const std::size_t sep = line.find_first_of("= ");
    if (sep == std::string_view::npos) continue;
    std::string value(line.substr(sep + 1));
    std::erase_if(value, [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
    found.emplace(flag_name(line.substr(0, sep)), value);
  }
  return found;
}

std::optional<std::string> whole_number(const std::string& text) {
  const std::size_t digits = text.find_last_not_of("0123456789");
  const std::string tail = digits == std::string::npos ? text : text.substr(digits + 1);
  if (tail.empty() || tail.size() > 7) return std::nullopt;
  return tail;
}

void add_directives(const std::map<std::string, std::string>& directives, const std::string& file,
                    std::vector<Setting>& settings) {
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(settings,
                               [&](const Setting& s) { return s.name == name && s.unknown.empty(); });
  };
  const auto add = [&](const char* name, const char* setting) {
    const auto at = directives.find(name);
    if (at == directives.end() || has(setting)) return;
    const auto number = whole_number(at->second);
    if (!number) return;
    std::erase_if(settings, [&](const Setting& s) { return s.name == setting; });
    settings.push_back({setting, *number, true, file + ": #SBATCH --" + name, {}});
  };
  if (has("launcher world")) return;
  add("nodes", "launcher nnodes");
  add("N", "launcher nnodes");
  add("gpus-per-node", "launcher per-node");
  add("gres", "launcher per-node");
  add("ntasks-per-node", "launcher per-node");
}

// A job is of one command. The others that train are told, each line once.
void add_other_trainings(const shell::Script& script, const shell::StartedCommand& taken,
                         ScriptSettings& result) {
  std::set<std::string> told{script.sources.place(taken.place)};
  for (const shell::StartedCommand& c : script.commands) {
    if (score(c) < kTraining || told.size() > kMostOtherTrainings) continue;
    std::string place = script.sources.place(c.place);
    if (!told.insert(place).second) continue;
    result.notes.push_back(
        {std::move(place), fmt::format("another command that trains; the job is of that at {}",
                                       script.sources.place(taken.place))});
  }
}

void add_notes(const shell::Script& script, ScriptSettings& result) {
  for (const shell::Note& note : script.notes)
    result.notes.push_back({script.sources.place(note.place), note.text});
}

}  // namespace

ScriptSettings settings_of_script(const std::filesystem::path& path, std::string_view content,
                                  const shell::ScriptOptions& options) {
  const std::map<std::string, std::string> directives = directives_of(content);
  shell::ScriptOptions with_slurm = options;
  const auto set = [&](const char* directive, const char* variable) {
    const auto at = directives.find(directive);
    if (at == directives.end()) return;
    if (const auto number = whole_number(at->second)) with_slurm.variables.emplace(variable, *number);
  };
  for (const char* variable : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"})
    set("nodes", variable), set("N", variable);
  set("ntasks-per-node", "SLURM_NTASKS_PER_NODE");
  set("gpus-per-node", "SLURM_GPUS_PER_NODE");
  set("gres", "SLURM_GPUS_ON_NODE");
  shell::Script script = shell::read_script(path, content, with_slurm);
  const auto best = std::ranges::max_element(script.commands, {}, score);
  if (best == script.commands.end() || score(*best) < kTraining)
    throw Error(Code::kMissingField, "no command of the script starts a training with flags")
        .at(path.string())
        .legal("torchrun ... pretrain_gpt.py --num-layers 32 ..., or a file of such flags alone")
        .fix("name the script that has the flags; --args gives the arguments with which it is called");
  ScriptSettings result;
  result.settings = CommandReader(script, best->words).all();
  add_other_trainings(script, *best, result);
  add_directives(directives, path.string(), result.settings);
  add_notes(script, result);
  return result;
}

ScriptSettings settings_of_arguments(const std::filesystem::path& path, std::string_view content,
                                     const shell::ScriptOptions& options) {
  shell::Script script = shell::read_arguments(path, content, options);
  ScriptSettings result;
  if (!script.commands.empty()) {
    std::vector<Text> words = script.commands.back().words;
    words.erase(words.begin());
    result.settings = CommandReader(script, words).all();
  }
  add_notes(script, result);
  return result;
}

}  // namespace hyperrun::frameworks
