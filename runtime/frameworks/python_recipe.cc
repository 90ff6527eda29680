#include "runtime/frameworks/python_recipe.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/base/joined.h"

namespace hyperrun::frameworks {
namespace {

constexpr std::size_t kMostLines = 200'000;

struct Line {
  std::string text;  // a statement with its continuation lines, without comments
  std::size_t number = 0, indent = 0;
};

struct Function {
  std::string name;
  std::vector<Line> lines;
};

bool is_identifier(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
             std::string_view::npos &&
         !(text[0] >= '0' && text[0] <= '9');
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

// Divides the file into statements: brackets and quotes of three join lines.
std::vector<Line> statements(const std::string& path, std::string_view content) {
  std::vector<Line> list;
  Line now;
  now.number = 1;
  int open = 0;
  std::size_t number = 1;
  std::string quote;
  for (std::size_t i = 0; i <= content.size(); ++i) {
    const char c = i < content.size() ? content[i] : '\n';
    if (!quote.empty()) {
      if (c == '\\' && quote.size() == 1 && i + 1 < content.size()) {
        now.text += content.substr(i++, 2);
      } else if (content.compare(i, quote.size(), quote) == 0) {
        now.text += quote;
        i += quote.size() - 1;
        quote.clear();
      } else {
        now.text += c;
      }
    } else if (c == '"' || c == '\'') {
      const std::string three(3, c);
      quote = content.compare(i, 3, three) == 0 ? three : std::string(1, c);
      now.text += quote;
      i += quote.size() - 1;
    } else if (c == '#') {
      while (i + 1 < content.size() && content[i + 1] != '\n') ++i;
    } else if (c == '\n' && open == 0 && !now.text.ends_with('\\')) {
      if (!trimmed(now.text).empty()) list.push_back(now);
      now = {};
    } else {
      if (c == '(' || c == '[' || c == '{') ++open;
      if (c == ')' || c == ']' || c == '}') open = std::max(0, open - 1);
      now.text += c;
    }
    if (now.text.find_first_not_of(" \t\n") == std::string::npos)
      now.number = c == '\n' ? number + 1 : number;
    if (c == '\n') ++number;
    if (list.size() > kMostLines) throw Error(Code::kSyntax, "too many statements for a recipe").at(path);
  }
  for (Line& line : list) {
    line.indent = line.text.find_first_not_of(" \t\n");
    const std::size_t start = line.text.rfind('\n', line.indent);
    if (start != std::string::npos) line.indent -= start + 1;
  }
  return list;
}

std::vector<Function> functions(const std::vector<Line>& lines) {
  std::vector<Function> list(1);  // the first has the statements outside of functions
  std::optional<std::size_t> indent;
  for (const Line& line : lines) {
    const std::string_view text = trimmed(line.text);
    if (indent && line.indent <= *indent) indent.reset();
    if (!indent && text.starts_with("def ")) {
      list.push_back({std::string(trimmed(text.substr(4, text.find('(') - 4))), {}});
      indent = line.indent;
      // Defaults of arguments are data as well: "def recipe(tensor_parallelism: int = 2)".
      Line head = line;
      head.text = std::string(text);
      list.back().lines.push_back(std::move(head));
      continue;
    }
    (indent ? list.back() : list.front()).lines.push_back(line);
  }
  return list;
}

// The value of a literal as frameworks' other files write it; nullopt: an expression.
std::optional<std::string> literal(std::string_view text) {
  text = trimmed(text);
  if (text.empty()) return std::nullopt;
  if (text == "True" || text == "False" || text == "None") return std::string(text);
  if (text.starts_with("torch.")) return std::string(text.substr(6));
  if ((text.front() == '"' || text.front() == '\'') && text.size() >= 2 && text.back() == text.front() &&
      text.substr(1, text.size() - 2).find(text.front()) == std::string_view::npos)
    return std::string(text.substr(1, text.size() - 2));
  if (text.find_first_not_of("0123456789+-_.eE") == std::string_view::npos &&
      text.find_first_of("0123456789") != std::string_view::npos)
    return std::string(text);
  if (text.front() == '[' || text.front() == '(') {
    std::string list;
    std::string_view inner = text.substr(1, text.size() - 2);
    while (!trimmed(inner).empty()) {
      const auto element = literal(inner.substr(0, inner.find(',')));
      if (!element) return std::nullopt;
      list += (list.empty() ? "" : " ") + *element;
      inner.remove_prefix(inner.find(',') == std::string_view::npos ? inner.size() : inner.find(',') + 1);
    }
    return list;
  }
  return std::nullopt;
}

// The parts of a text between commas that no bracket and no quote holds.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> list;
  int open = 0;
  char quote = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++open;
    } else if (c == ')' || c == ']' || c == '}') {
      --open;
    } else if (c == ',' && open == 0) {
      list.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  list.push_back(text.substr(begin));
  return list;
}

class RecipeReader {
 public:
  RecipeReader(const std::string& path, const std::vector<Function>& functions)
      : path_(path), functions_(functions) {}

  void read(const Function& f, int depth) {
    for (const Line& line : f.lines) read_statement(line, depth);
  }

  RecipeSettings result;

 private:
  std::string place(const Line& line) const { return fmt::format("{}:{}", path_, line.number); }

  // A later assignment of a recipe replaces an earlier one.
  void set(std::string name, std::string value, const Line& line) {
    std::erase_if(result.settings, [&](const Setting& s) { return s.name == name; });
    result.settings.push_back({std::move(name), std::move(value), true, place(line), {}});
  }

  // The value of a literal, or of a name that has one.
  std::optional<std::string> value_of(std::string_view text) const {
    if (auto v = literal(text)) return v;
    const auto known = names_.find(std::string(trimmed(text)));
    return known == names_.end() ? std::nullopt : std::optional(known->second);
  }

  // Defaults of arguments are values that the names have in the body: "def recipe(tensor_parallelism: int =
  // 2)".
  void name_arguments(std::string_view text) {
    text = text.substr(0, text.rfind(')'));
    for (const std::string_view part : parts_of(text)) {
      const std::size_t equals = part.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view name = trimmed(part.substr(0, std::min(part.find(':'), equals)));
      if (const auto v = value_of(part.substr(equals + 1)); v && is_identifier(name))
        names_.emplace(name, *v);
    }
  }

  void read_statement(const Line& line, int depth) {
    std::string_view text = trimmed(line.text);
    if (text.starts_with("return ")) text = trimmed(text.substr(7));
    if (text.starts_with("def ")) return name_arguments(text.substr(text.find('(') + 1));
    const std::size_t equals = assignment(text);
    if (equals == std::string_view::npos) {
      if (!read_model(text, line)) read_call(text, line, depth);
      return;
    }
    std::string_view target = trimmed(text.substr(0, equals));
    target = trimmed(target.substr(0, target.find(':')));
    const std::string_view value = trimmed(text.substr(equals + 1));
    const bool is_field = target.find('.') != std::string_view::npos;
    if (is_field && is_identifier(target.substr(target.rfind('.') + 1))) {
      if (const auto v = value_of(value))
        return set(std::string(target.substr(target.find('.') + 1)), *v, line);
      if (read_model(value, line) || read_call(value, line, depth)) return;
      note(line, fmt::format("{} = {}", target, value));
      return;
    }
    if (const auto v = value_of(value); v && is_identifier(target)) names_[std::string(target)] = *v;
    if (!read_model(value, line)) read_call(value, line, depth);
  }

  // The place of a single "=" at the statement's top.
  static std::size_t assignment(std::string_view text) {
    int open = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '(' || text[i] == '[' || text[i] == '{') ++open;
      if (text[i] == ')' || text[i] == ']' || text[i] == '}') --open;
      if (text[i] == '"' || text[i] == '\'') return std::string_view::npos;
      if (text[i] == '=' && open == 0)
        return i + 1 < text.size() && text[i + 1] == '=' ? std::string_view::npos : i;
    }
    return std::string_view::npos;
  }

  // AutoBridge.from_hf_pretrained("meta-llama/Meta-Llama-3-8B") names the model.
  bool read_model(std::string_view value, const Line& line) {
    for (const std::string_view call : {"from_hf_pretrained(", "from_auto_config(", "from_hf_config("}) {
      const std::size_t at = value.find(call);
      if (at == std::string_view::npos) continue;
      const std::string_view rest = value.substr(at + call.size());
      const auto name = literal(rest.substr(0, rest.find_first_of(",)")));
      if (name) return set("hf_path", *name, line), true;
    }
    return read_provider(value, line);
  }

  // Llama31ModelProvider405B(...) names the model as well.
  bool read_provider(std::string_view value, const Line& line) {
    static constexpr std::string_view kProvider = "ModelProvider";
    const std::size_t at = value.find(kProvider), open = value.find('(');
    if (at == std::string_view::npos || open == std::string_view::npos || at > open || at == 0) return false;
    std::string name;
    for (const char c : value.substr(0, at))
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (name.starts_with("llama") && name.size() > 5)
      name = "llama-" + name.substr(5, 1) + (name.size() > 6 ? "." + name.substr(6) : "");
    if (name == "deepseekv3" || name == "deepseekv2") name = "deepseek-" + name.substr(8);
    const std::string_view size = trimmed(value.substr(at + kProvider.size(), open - at - kProvider.size()));
    if (!is_identifier("a" + std::string(size))) return false;
    if (!size.empty()) name += "-";
    for (const char c : size)
      name += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (name != "gpt") set("hf_path", name, line);
    return false;  // its arguments are settings of the model
  }

  // Keyword arguments of a call, entries of a dictionary, and a call of another recipe of this file.
  bool read_call(std::string_view text, const Line& line, int depth) {
    const std::size_t open = text.find_first_of("({");
    if (open == std::string_view::npos) return false;
    const std::string name(trimmed(text.substr(0, open)));
    const auto f = std::ranges::find(functions_, name, &Function::name);
    if (!name.empty() && f != functions_.end() && depth < 8) {
      read(*f, depth + 1);
    } else if (name.starts_with("_") || name.ends_with("_config")) {
      note(line, fmt::format("what {} of another file sets", name));
    }
    return read_arguments(text.substr(open + 1), line, depth);
  }

  bool read_arguments(std::string_view text, const Line& line, int depth) {
    text = text.substr(0, text.find_last_of(")}"));
    bool found = false;
    for (std::string_view part : parts_of(text)) {
      part = trimmed(part);
      const bool is_entry = !part.empty() && (part[0] == '"' || part[0] == '\'');
      const std::size_t sep = is_entry ? part.find(':') : part.find('=');
      if (sep == std::string_view::npos) continue;
      std::string_view key = trimmed(part.substr(0, sep));
      if (is_entry) key = key.substr(1, key.size() < 2 ? 0 : key.size() - 2);
      key = trimmed(key.substr(0, key.find(':')));
      const std::string_view value = trimmed(part.substr(sep + 1));
      if (!is_identifier(key)) continue;
      if (const auto v = value_of(value)) {
        set(std::string(key), *v, line), found = true;
      } else if (depth < 8 && value.find_first_of("({") != std::string_view::npos) {
        found = read_arguments(value.substr(value.find_first_of("({") + 1), line, depth + 1) || found;
      }
    }
    return found;
  }

  void note(const Line& line, std::string what) {
    std::ranges::replace(what, '\n', ' ');
    if (result.notes.size() < 100)
      result.notes.push_back({place(line), "not read, as it is no plain value: " + what.substr(0, 100)});
  }

  const std::string& path_;
  const std::vector<Function>& functions_;
  std::map<std::string, std::string> names_;
};

// Functions that make a configuration: a field of some object is set, or keyword arguments are given.
bool is_recipe(const Function& f) {
  if (f.name.empty()) return false;
  for (const Line& line : f.lines)
    if (line.text.find("parallel") != std::string::npos && !f.name.starts_with("set_")) return true;
  return false;
}

}  // namespace

RecipeSettings read_python_recipe(const std::string& path, std::string_view content,
                                  const std::string& function) {
  const std::vector<Function> all = functions(statements(path, content));
  std::vector<std::string> names;
  const Function* chosen = nullptr;
  for (const Function& f : all) {
    if (!is_recipe(f)) continue;
    names.push_back(f.name);
    if (f.name == function || (function.empty() && !f.name.starts_with("_")))
      chosen = chosen == nullptr ? &f : chosen;
  }
  const auto public_names =
      std::ranges::count_if(names, [](const std::string& n) { return !n.starts_with("_"); });
  if (names.empty() && function.empty()) chosen = all.data();
  if (chosen == nullptr || (function.empty() && public_names > 1))
    throw Error(Code::kMissingField, function.empty()
                                         ? fmt::format("the file has {} recipes", names.size())
                                         : fmt::format("the file has no recipe \"{}\"", function))
        .at(path)
        .legal(joined(names))
        .fix("name one: --recipe " + (names.empty() ? "NAME" : names.front()));
  RecipeReader reader(path, all);
  reader.read(*chosen, 0);
  reader.result.name = chosen->name;
  return std::move(reader.result);
}

}  // namespace hyperrun::frameworks
