#include "runtime/generate/generated_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/model/checkpoint/json_file.h"

namespace hyperrun {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSettings = "settings";

std::string line_of(const GenerationSettings& settings) {
  nlohmann::ordered_json json;
  for (const auto& [name, value] : settings) json[name] = value;
  return nlohmann::ordered_json{{kSettings, json}}.dump(-1, ' ', false,
                                                        nlohmann::ordered_json::error_handler_t::replace);
}

void check_settings(const nlohmann::json& line, const GenerationSettings& settings,
                    const std::string& place) {
  const JsonFields fields(JsonFields(line, place).required(kSettings), place);
  for (const auto& [name, value] : settings)
    if (const std::string before = fields.string(name.c_str(), ""); before != valid_utf8(value))
      throw Error(Code::kBadValue,
                  fmt::format("its texts were drawn with {} {}, now it is {}", name, before, value))
          .at(place)
          .legal("the same settings, or a file of their own")
          .fix("give the settings of before, or another --out");
}

[[noreturn]] void fail(const char* what, const fs::path& path) {
  throw Error(Code::kUnwritable, fmt::format("cannot {}: {}", what, std::generic_category().message(errno)))
      .at(path.string());
}

}  // namespace

GeneratedFile::GeneratedFile(fs::path file, GenerationSettings settings, std::span<const std::string> prompts,
                             bool resumes)
    : file_(std::move(file)),
      partial_(file_.string() + ".partial"),
      settings_(std::move(settings)),
      prompts_(prompts.begin(), prompts.end()) {
  const bool interrupted = fs::exists(partial_);
  if (interrupted && !resumes)
    throw Error(Code::kUsage, "a generation that was interrupted has left results")
        .at(partial_.string())
        .legal("--resume, to go on with the prompts that have none")
        .fix("add --resume, or remove that file");
  if (interrupted) {
    read(partial_, true);
  } else if (resumes && fs::exists(file_)) {
    read(file_, false);
    if (!is_whole())
      throw Error(Code::kBadValue,
                  fmt::format("it has {} of {} prompts, and none is left from an interrupted "
                              "generation",
                              count(), prompts_.size()))
          .at(file_.string())
          .legal("the results of these prompts")
          .fix("give another --out, or leave --resume out to write it anew");
  }
  from_before_ = count();
}

GeneratedFile::~GeneratedFile() {
  if (fd_ >= 0) ::close(fd_);
}

// Reads whole lines; the rest of a line that was cut short is no result.
void GeneratedFile::read(const fs::path& from, bool has_settings) {
  const std::string text = read_file(from, Code::kBadValue);
  std::string_view rest(text);
  for (std::int64_t number = 1; rest.find('\n') != std::string_view::npos; ++number) {
    const std::string line(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(line.size() + 1);
    const std::string place = fmt::format("{}:{}", from.string(), number);
    const nlohmann::json json = parse_json(line, place);
    if (has_settings && number == 1) {
      check_settings(json, settings_, place);
      continue;
    }
    const JsonFields fields(json, place);
    const std::int64_t id = fields.integer("id");
    if (id < 0 || id >= std::ssize(prompts_) ||
        fields.string("prompt", "") != valid_utf8(prompts_[static_cast<std::size_t>(id)]))
      throw Error(Code::kBadValue, fmt::format("prompt {} is another one now", id))
          .at(place)
          .legal("the prompts of before, in their order")
          .fix("give these prompts, or another --out");
    lines_.emplace(id, line);
  }
}

// Writes what was read again, so that nothing follows a line that was cut short, and keeps the file open.
void GeneratedFile::begin() {
  std::string text = line_of(settings_) + "\n";
  for (const auto& [id, line] : lines_) text += line + "\n";
  write_file(partial_, text);
  fd_ = ::open(partial_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd_ < 0) fail("open", partial_);
}

void GeneratedFile::append(const std::string& line) {
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write", partial_);
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

void GeneratedFile::add(const GeneratedText& text) {
  const std::string line = to_json_line(text);
  if (fd_ < 0) begin();
  append(line + "\n");
  lines_.emplace(text.id, line);
}

void GeneratedFile::finish() {
  std::string text;
  for (const auto& [id, line] : lines_) text += line + "\n";
  write_file(file_, text);
  std::error_code left_for_the_next_run;
  fs::remove(partial_, left_for_the_next_run);
}

}  // namespace hyperrun
