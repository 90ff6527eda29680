#include "runtime/frameworks/shell/script.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/frameworks/shell/conditions.h"
#include "runtime/frameworks/shell/expansion.h"
#include "runtime/frameworks/shell/syntax.h"
#include "runtime/frameworks/shell/variables.h"

namespace hyperrun::shell {
namespace {

constexpr int kMostCommands = 200'000;
constexpr int kMostRounds = 2'000;
constexpr int kDeepest = 40;
constexpr std::size_t kMostStarted = 5'000;
constexpr std::size_t kMostNotes = 200;

class Reader {
 public:
  Reader(Script& script, std::filesystem::path path) : script_(script), path_(std::move(path)) {}

  Variables& variables() { return variables_; }
  // Sets a variable that the user gives. An assignment whose value is not known leaves it alone.
  void give(const std::string& name, Text value) {
    variables_.set(name, std::move(value));
    given_.insert(name);
  }

  void read(const Text& text) {
    const Commands list = parse(text, script_.sources);
    run(list);
  }

 private:
  enum class Jump : std::uint8_t { kNone, kBreak, kContinue };

  Error too_much(std::uint32_t place, const std::string& cause) const {
    return Error(Code::kSyntax, cause)
        .at(script_.sources.place(place))
        .legal("a launch script")
        .fix("give the arguments themselves in a file");
  }
  void note(std::uint32_t place, std::string text) {
    if (script_.notes.size() < kMostNotes && noted_.insert({place, text}).second)
      script_.notes.push_back({place, std::move(text)});
  }

  // Runs the commands; nullopt where the last status is not known.
  std::optional<bool> run(const Commands& list) {
    if (++depth_ > kDeepest * 4) throw too_much(list.empty() ? 0 : list[0].place, "calls nested too deeply");
    std::optional<bool> status = true;
    bool skips = false;
    for (const Command& c : list) {
      if (!skips) status = run(c);
      if (jump_ != Jump::kNone) break;
      // The next command depends on this one's status. What is not known counts as success.
      if (c.then == Then::kIfDone) skips = status && !*status;
      if (c.then == Then::kUnlessDone) skips = !status || *status;
      if (c.then == Then::kNext || c.then == Then::kPipe) skips = false;
    }
    --depth_;
    return status;
  }

  std::optional<bool> run(const Command& c) {
    if (++commands_ > kMostCommands) throw too_much(c.place, "the script goes on and on");
    std::optional<bool> status = true;
    switch (c.kind) {
      case CommandKind::kSimple: status = run_simple(c); break;
      case CommandKind::kIf: run_if(c); break;
      case CommandKind::kLoop: run_loop(c); break;
      case CommandKind::kFor: run_for(c); break;
      case CommandKind::kCountedFor: run_counted(c); break;
      case CommandKind::kCase: run_case(c); break;
      case CommandKind::kGroup: status = run(c.clauses[0].body); break;
      case CommandKind::kFunction: functions_[c.name] = std::make_shared<Commands>(c.clauses[0].body); break;
      case CommandKind::kTest: status = test(c.words, c.place, true); break;
      case CommandKind::kArithmetic: status = true_of(c); break;
    }
    if (c.negated && status) status = !*status;
    return status;
  }

  std::optional<bool> true_of(const Command& c) {
    return c.parts.empty() ? std::optional<bool>(false) : expander_.truth(c.parts[0]);
  }

  // [[ ]] does not divide words into fields; [ ] does.
  std::optional<bool> test(const std::vector<Word>& words, std::uint32_t place, bool whole) {
    std::vector<Text> operands;
    for (const Word& w : words) {
      if (whole) {
        operands.push_back(expander_.text(w.text));
        continue;
      }
      for (Text& field : expander_.fields(w)) operands.push_back(std::move(field));
    }
    return judged(operands, place);
  }
  std::optional<bool> judged(const std::vector<Text>& operands, std::uint32_t place) {
    const std::optional<bool> result = holds(operands);
    if (result) return result;
    std::string text;
    for (const Text& t : operands) text += " " + without_marks(t.chars);
    note(place, "a condition that only a run could judge counts as false:" + text.substr(0, 80));
    return false;
  }

  void run_if(const Command& c) {
    for (const Clause& clause : c.clauses)
      if (clause.condition.empty() || run(clause.condition).value_or(false)) {
        run(clause.body);
        return;
      }
  }

  // False: the loop ends.
  bool goes_on() {
    const bool ends = jump_ == Jump::kBreak;
    jump_ = Jump::kNone;
    return !ends;
  }
  void run_loop(const Command& c) {
    for (int round = 0; round < kMostRounds; ++round) {
      if (run(c.clauses[0].condition).value_or(false) == c.until) return;
      run(c.clauses[0].body);
      if (!goes_on()) return;
    }
    note(c.place, fmt::format("a loop was left after {} rounds", kMostRounds));
  }
  void run_for(const Command& c) {
    std::vector<Text> items;
    for (const Word& w : c.words)
      for (Text& field : expander_.fields(w)) items.push_back(std::move(field));
    for (Text& item : items) {
      variables_.set(c.name, std::move(item));
      run(c.clauses[0].body);
      if (!goes_on()) return;
    }
  }
  void run_counted(const Command& c) {
    if (c.parts.size() != 3) return;
    expander_.truth(c.parts[0]);
    for (int round = 0; round < kMostRounds && expander_.truth(c.parts[1]).value_or(false); ++round) {
      run(c.clauses[0].body);
      if (!goes_on()) return;
      expander_.truth(c.parts[2]);
    }
  }
  void run_case(const Command& c) {
    const Text subject = expander_.text(c.words[0].text);
    for (const Clause& clause : c.clauses)
      for (const Word& pattern : clause.patterns)
        if (matches_glob(is_mark(subject.chars) ? "" : subject.chars, expander_.text(pattern.text).chars)) {
          run(clause.body);
          return;
        }
  }

  static bool mentions(const std::string& value, const std::string& name) {
    return value.find("$" + name + " ") != std::string::npos ||
           value.find("${" + name + "}") != std::string::npos;
  }

  void assign(const Assignment& a) {
    if (a.is_array) return assign_array(a);
    // A list that grows (A="$A --flag") is empty at first. A=$A alone hands on what only a run knows.
    if (a.value.chars.find_first_of(" \n") != std::string::npos && mentions(a.value.chars, a.name))
      variables_.by_name.try_emplace(a.name, Variable{{Text{}}, {}, false});
    Text value = expander_.text(a.value);
    // What only a run would know, the user may have said: --set GPUS=8 for GPUS=$(nvidia-smi -L | wc -l).
    if (given_.contains(a.name) && !a.index && has_mark(value.chars)) return;
    Variable& v = variables_.by_name[a.name];
    if (a.index) return assign_element(v, a, std::move(value));
    if (!a.appends || v.elements.empty()) {
      if (v.is_array && !v.elements.empty())
        v.elements[0] = std::move(value);
      else
        v = {{std::move(value)}, {}, v.is_array};
      return;
    }
    if (v.elements[0].size() + value.size() > (8U << 20))
      throw too_much(a.place, a.name + " becomes too long");
    v.elements[0].add(value);
  }
  void assign_element(Variable& v, const Assignment& a, Text value) {
    const std::string index = expander_.text(*a.index).chars;
    std::size_t n = 0;
    const bool is_number =
        !index.empty() && index.size() < 6 && index.find_first_not_of("0123456789") == std::string::npos;
    if (is_number) n = std::stoul(index);
    if (!is_number || n > 10'000) {
      v.named[index] = std::move(value);
      return;
    }
    if (v.elements.size() <= n) v.elements.resize(n + 1);
    v.elements[n] = std::move(value);
    v.is_array = true;
  }
  void assign_array(const Assignment& a) {
    Variable fresh;
    fresh.is_array = true;
    for (const Word& w : a.elements) {
      const std::string& s = w.text.chars;
      const std::size_t close = s.find("]=");
      if (s.starts_with("[") && close != std::string::npos) {
        fresh.named[expander_.text(w.text.part(1, close)).chars] =
            expander_.text(w.text.part(close + 2, s.size()));
        continue;
      }
      for (Text& field : expander_.fields(w)) fresh.elements.push_back(std::move(field));
    }
    Variable& v = variables_.by_name[a.name];
    if (!a.appends) {
      v = std::move(fresh);
      return;
    }
    v.is_array = true;
    if (v.elements.size() + fresh.elements.size() > 1'000'000)
      throw too_much(a.place, a.name + " becomes too long");
    for (Text& element : fresh.elements) v.elements.push_back(std::move(element));
    for (auto& [key, value] : fresh.named) v.named[key] = std::move(value);
  }

  std::optional<bool> run_simple(const Command& c) {
    for (const Assignment& a : c.assignments) assign(a);
    std::vector<Text> words;
    for (const Word& w : c.words)
      for (Text& field : expander_.fields(w)) words.push_back(std::move(field));
    return words.empty() ? std::optional<bool>(true) : start(words, c.place);
  }

  std::optional<bool> start(std::vector<Text>& words, std::uint32_t place) {
    const std::string& name = words[0].chars;
    if (name == "[" || name == "test") {
      std::vector<Text> operands(words.begin() + 1, words.end());
      if (name == "[" && !operands.empty() && operands.back().chars == "]") operands.pop_back();
      return judged(operands, place);
    }
    if (name == "false") return false;
    if (name == "break" || name == "continue") {
      jump_ = name == "break" ? Jump::kBreak : Jump::kContinue;
      return true;
    }
    if (name == "read" || name == "getopts" || name == "command" || name == "which" || name == "type")
      return false;
    if (run_builtin(words, place)) return true;
    if (const auto f = functions_.find(name); f != functions_.end()) return call(f->second, words, place);
    if (run_in_shell(words, place)) return true;
    if (name.starts_with("--"))
      note(place,
           fmt::format("{} and what follows are no part of a command: the line before does not go on", name));
    const bool has_option =
        std::ranges::any_of(words, [](const Text& w) { return w.chars.starts_with("-"); });
    if (!has_option || script_.commands.size() >= kMostStarted) return true;
    words.insert(words.begin(), launcher_.begin(), launcher_.end());
    script_.commands.push_back({std::move(words), place});
    return true;
  }

  // srun -N 2 bash -c "...": the commands of the text, each behind the launcher's words.
  bool run_in_shell(const std::vector<Text>& words, std::uint32_t place) {
    for (std::size_t i = 0; i + 2 < words.size(); ++i) {
      const std::string& name = words[i].chars;
      const std::string& option = words[i + 1].chars;
      const bool is_shell =
          name == "bash" || name == "sh" || name.ends_with("/bash") || name.ends_with("/sh");
      if (!is_shell || !option.starts_with("-") || !option.ends_with("c")) continue;
      std::vector<Text> outer(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(i));
      std::swap(outer, launcher_);
      nested(words[i + 2], place);
      launcher_ = std::move(outer);
      return true;
    }
    return false;
  }

  bool run_builtin(const std::vector<Text>& words, std::uint32_t place) {
    const std::string& name = words[0].chars;
    if (name == "eval") {
      Text all;
      for (std::size_t i = 1; i < words.size(); ++i) {
        if (i > 1) all.add(' ', place);
        all.add(words[i]);
      }
      nested(all, place);
    } else if (name == "source" || name == ".") {
      if (words.size() > 1) include(words[1].chars, place);
    } else if (name == "shift") {
      auto& list = variables_.arguments;
      const std::size_t n = words.size() > 1 && words[1].size() == 1 ? words[1].chars[0] - '0' : 1;
      list.erase(list.begin(),
                 list.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(n, list.size())));
    } else if (name == "set") {
      if (words.size() > 1 && words[1].chars == "--") {
        variables_.arguments.assign(words.begin() + 2, words.end());
        variables_.arguments_known = true;
      }
    } else if (name == "unset") {
      for (std::size_t i = 1; i < words.size(); ++i) variables_.by_name.erase(words[i].chars);
    } else if (name == "let") {
      for (std::size_t i = 1; i < words.size(); ++i) expander_.truth(words[i]);
    } else {
      static constexpr std::array<std::string_view, 16> kOthers{
          "export", "declare", "local", "readonly", "typeset", "echo", "printf", "cd",
          "exit",   "return",  "true",  ":",        "alias",   "wait", "trap",   "ulimit"};
      return std::ranges::find(kOthers, name) != kOthers.end();
    }
    return true;
  }

  void nested(const Text& text, std::uint32_t place) {
    if (++nesting_ > kDeepest) throw too_much(place, "eval and source nested too deeply");
    read(text);
    --nesting_;
  }

  void include(const std::string& name, std::uint32_t place) {
    if (has_mark(name)) {
      // "$(dirname $0)/env.sh" and the like: the file's own name beside the script.
      const std::string plain = without_marks(name);
      return include_file(plain.substr(plain.rfind('/') + 1), name, place);
    }
    include_file(name, name, place);
  }
  void include_file(const std::string& name, const std::string& written, std::uint32_t place) {
    std::error_code none;
    std::filesystem::path file = path_.parent_path() / name;
    if (!std::filesystem::is_regular_file(file, none))
      file = path_.parent_path() / std::filesystem::path(name).filename();
    if (!std::filesystem::is_regular_file(file, none))
      return note(place, fmt::format("{} is not beside the script; what it sets is not known",
                                     without_marks(written)));
    std::ifstream in(file, std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(in), {}};
    nested(script_.sources.add(file.string(), content), place);
  }

  std::optional<bool> call(const std::shared_ptr<Commands>& body, const std::vector<Text>& words,
                           std::uint32_t place) {
    if (++nesting_ > kDeepest) throw too_much(place, words[0].chars + " calls itself without end");
    std::vector<Text> arguments(words.begin() + 1, words.end());
    std::swap(arguments, variables_.arguments);
    const bool known = std::exchange(variables_.arguments_known, true);
    const std::optional<bool> status = run(*body);
    variables_.arguments = std::move(arguments);
    variables_.arguments_known = known;
    --nesting_;
    return status;
  }

  Script& script_;
  std::filesystem::path path_;
  Variables variables_;
  Expander expander_{variables_, script_.sources};
  std::map<std::string, std::shared_ptr<Commands>> functions_;
  std::set<std::pair<std::uint32_t, std::string>> noted_;
  std::set<std::string> given_;
  std::vector<Text> launcher_;
  Jump jump_ = Jump::kNone;
  int depth_ = 0, nesting_ = 0, commands_ = 0;
};

// A text of the user, which stands in no file.
Text of_user(const std::string& value) {
  Text t;
  t.add(value, 0);
  return t;
}

Script read_text(const std::filesystem::path& path, std::string_view content, const ScriptOptions& options,
                 std::string_view before, std::string_view behind) {
  Script script;
  Reader reader(script, path);
  Text text = of_user(std::string(before));
  text.add(script.sources.add(path.string(), content));
  text.add(behind, 0);
  Variables& variables = reader.variables();
  variables.script = path.string();
  variables.arguments_known = options.arguments.has_value();
  for (const auto& [name, value] : options.variables) reader.give(name, of_user(value));
  if (options.arguments)
    for (const std::string& argument : *options.arguments) variables.arguments.push_back(of_user(argument));
  reader.read(text);
  return script;
}

}  // namespace

Script read_script(const std::filesystem::path& path, std::string_view content,
                   const ScriptOptions& options) {
  return read_text(path, content, options, "", "");
}

Script read_arguments(const std::filesystem::path& path, std::string_view content,
                      const ScriptOptions& options) {
  return read_text(path, content, options, "hyperrun_arguments=(",
                   "\n)\narguments \"${hyperrun_arguments[@]}\"\n");
}

}  // namespace hyperrun::shell
