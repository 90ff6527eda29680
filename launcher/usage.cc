#include "launcher/usage.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/joined.h"
#include "runtime/base/misspelt.h"

namespace hyperrun {
namespace {

const CLI::App& called_command(const CLI::App& app) {
  const std::vector<CLI::App*> commands = app.get_subcommands();
  return commands.empty() ? app : *commands.front();
}

// Points to the help that lists the legal options: the command's own, else that of hyperrun.
std::string help_of(const CLI::App& command) {
  const bool is_shown = command.get_parent() != nullptr && !command.get_group().empty();
  return is_shown ? "hyperrun " + command.get_name() + " --help shows its options and examples"
                  : "hyperrun --help shows commands, options and examples";
}

// The command that was probably meant: one that begins like the word, or that the word continues
// ("simulate"), else the one that differs in the fewest letters.
std::string_view command_like(std::string_view word, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (word.starts_with(name) || std::string_view(name).starts_with(word)) return name;
  return most_alike(word, {names.begin(), names.end()});
}

Error refused(const CLI::App& command, const std::string& cause, const std::string& legal,
              const std::string& fix) {
  return Error(Code::kUsage, cause).legal(legal).fix((fix.empty() ? "" : fix + "; ") + help_of(command));
}

bool is_flag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

// The command's options as a user types them: positional arguments such as the job first.
std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional()) names.push_back(option->get_name());
  for (const CLI::Option* option : command.get_options())
    if (!option->get_positional()) names.push_back(option->get_name());
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!command->get_group().empty()) names.push_back(command->get_name());
  return names;
}

// Asks whether a similar name was meant by the first unknown option. Empty if no name is similar.
std::string suggest_option(const std::vector<std::string>& unknown, const std::vector<std::string>& names) {
  const auto option =
      std::ranges::find_if(unknown, [](const std::string& word) { return word.starts_with('-'); });
  if (option == unknown.end()) return "";
  const std::string_view written = std::string_view(*option).substr(0, option->find('='));
  const std::string_view near = most_alike(written, {names.begin(), names.end()});
  return near.empty() ? "" : fmt::format("did you mean {}?", near);
}

Error not_expected(const CLI::App& command, const std::vector<std::string>& unknown) {
  const std::vector<std::string> names = option_names(command);
  const std::string guess = suggest_option(unknown, names);
  Error error = refused(command, "not expected: " + joined(unknown, " "), joined(names), "");
  if (!guess.empty()) error.fix(guess + " " + help_of(command));
  return error;
}

bool ends_a_name(char c) { return std::string_view(" :,=").find(c) != std::string_view::npos; }

std::size_t place_of(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || text[at - 1] == ' ') && (end == text.size() || ends_a_name(text[end]))) return at;
  }
  return std::string_view::npos;
}

// The options that CLI11's message names, in its order: first the faulty option, then the other one of a
// pair.
std::vector<const CLI::Option*> options_named_in(std::string_view text, const CLI::App& command) {
  std::vector<const CLI::Option*> named;
  for (const CLI::Option* option : command.get_options())
    if (place_of(text, option->get_name()) != std::string_view::npos) named.push_back(option);
  std::ranges::sort(named, {}, [&](const CLI::Option* o) { return place_of(text, o->get_name()); });
  return named;
}

// The option's legal values, from the descriptions of its checks.
std::string legal_values(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t colon = type.find(':');
  return colon == std::string::npos ? "any that is not empty, and no option" : type.substr(colon + 1);
}

// The cause of an error about values: too many, too few, or one that cannot be read.
std::string what_is_wrong(const CLI::Option& option, const CLI::ParseError& e) {
  const std::string text = e.what(), start = option.get_name() + ": ";
  if (is_flag(option)) return "it takes no value";
  if (option.count() == 0) return "a value is missing";
  if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::ArgumentMismatch))
    return fmt::format("it is given {} times", option.count());
  return text.starts_with(start) ? text.substr(start.size()) : text;
}

Error bad_value(const CLI::App& command, const CLI::Option& option, const CLI::ParseError& e) {
  const std::string& name = option.get_name();
  const std::string legal = is_flag(option) ? name + " alone" : legal_values(option);
  return refused(command, what_is_wrong(option, e), legal, "").at(name);
}

Error missing(const CLI::App& command, const CLI::Option& option, const CLI::ParseError& e) {
  return refused(command, e.what(), option.get_name() + ": " + option.get_description(), "add it");
}

Error not_together(const CLI::App& command, const CLI::Option& one, const CLI::Option& other,
                   const CLI::ParseError& e) {
  const std::string a = one.get_name(), b = other.get_name();
  if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExcludesError))
    return refused(command, e.what(), a + " or " + b, "leave one of them out");
  return refused(command, e.what(), a + " beside " + b, fmt::format("add {}, or leave {} out", b, a));
}

bool looks_like_a_path(std::string_view word) { return word.find_first_of("./") != std::string_view::npos; }

}  // namespace

void require_command_or_job(const CLI::App& app, const std::vector<std::string>& words) {
  const std::string& word = words.front();
  if (looks_like_a_path(word) || std::filesystem::exists(word)) return;
  const std::vector<std::string> names = command_names(app);
  const std::string_view near = command_like(word, names);
  const bool has_a_job = words.size() > 1 && !words[1].starts_with('-');
  if (near.empty() && !has_a_job) return;
  const std::string guess = near.empty() ? "" : fmt::format("did you mean {}? ", near);
  throw Error(Code::kUsage, fmt::format("no command {}, and no job of that name", word))
      .legal(joined(names) + ", or a job")
      .fix(guess + help_of(app));
}

Error not_understood(const CLI::App& app, const CLI::ParseError& e) {
  const CLI::App& command = called_command(app);
  // Unknown words are reported first: a missing option may only be misspelt.
  if (const std::vector<std::string> unknown = app.remaining(true); !unknown.empty())
    return not_expected(command, unknown);
  const std::vector<const CLI::Option*> named = options_named_in(e.what(), command);
  if (named.empty()) return refused(command, e.what(), joined(command_names(app)), "");
  const CLI::Option& blamed = *named.front();
  if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError))
    return missing(command, blamed, e);
  const bool is_of_two = e.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExcludesError) ||
                         e.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiresError);
  if (is_of_two && named.size() > 1) return not_together(command, blamed, *named[1], e);
  return bad_value(command, blamed, e);
}

}  // namespace hyperrun
