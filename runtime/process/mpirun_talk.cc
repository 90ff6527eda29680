#include "runtime/process/mpirun_talk.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hyperrun::process {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 16;  // of messages that are kept
constexpr int kMostLines = 8;                             // of one message; what follows is general advice

// The rule is 74 dashes.
bool is_rule(std::string_view line) {
  return line.size() >= 70 && line.find_first_not_of('-') == std::string_view::npos;
}

// Lines without a frame that are about framed messages.
bool is_about_messages(std::string_view line) {
  constexpr std::array<std::string_view, 3> kParts{"more process has sent help message",
                                                   "more processes have sent help message",
                                                   "Set MCA parameter \"orte_base_help_aggregate\""};
  return std::ranges::any_of(
      kParts, [&](std::string_view part) { return line.find(part) != std::string_view::npos; });
}

// A message that says no more than that there was another one.
bool is_empty_talk(std::string_view frame) { return frame.find("FORCE-TERMINATE") != std::string_view::npos; }

// A message whose first line says all: a list of everything that may be wrong follows.
bool is_general(std::string_view frame) {
  return frame.starts_with("ORTE was unable to reliably start one or more daemons");
}

}  // namespace

std::string MpirunTalk::without(std::string_view said) {
  std::string out;
  begun_.append(said);
  std::size_t begin = 0;
  for (std::size_t end = begun_.find('\n'); end != std::string::npos; end = begun_.find('\n', begin)) {
    take(begun_.substr(begin, end - begin), out);
    begin = end + 1;
  }
  begun_.erase(0, begin);
  return out;
}

void MpirunTalk::take(const std::string& line, std::string& out) {
  if (is_rule(line)) {
    if (framed_) end_frame();
    framed_ = !framed_;
  } else if (framed_) {
    const bool says_something = line.find_first_not_of(' ') != std::string::npos;
    if (says_something && ++lines_ <= kMostLines) frame_ += line + "\n";
  } else if (!is_about_messages(line)) {
    out += line + "\n";
  }
}

void MpirunTalk::end_frame() {
  if (is_general(frame_)) frame_.resize(frame_.find('\n') + 1);
  const bool told = messages_.find(frame_) != std::string::npos;
  if (!told && !is_empty_talk(frame_) && messages_.size() < kMostBytes) messages_ += frame_;
  frame_.clear();
  lines_ = 0;
}

std::string MpirunTalk::rest() {
  end_frame();
  return std::exchange(begun_, {});
}

}  // namespace hyperrun::process
