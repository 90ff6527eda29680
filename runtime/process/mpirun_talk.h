// Tells mpirun's own messages from the output of its ranks. mpirun frames its messages in rules of dashes.
// They are about its start, or about ranks that it has lost, which the controller reports better; so they are
// not passed on but kept for an error that mpirun causes. With --quiet they would be lost.
#pragma once

#include <string>
#include <string_view>

namespace hyperrun::process {

class MpirunTalk {
 public:
  // Takes the next output. Returns what is not mpirun's; it ends with a whole line, and the rest follows
  // later.
  std::string without(std::string_view said);

  // Returns the last line if it has no end; to be called at the end of the output.
  std::string rest();

  // The first lines of mpirun's messages so far, each message once, without frames.
  const std::string& messages() const { return messages_; }

 private:
  void take(const std::string& line, std::string& out);
  void end_frame();

  std::string begun_;  // a line whose end is missing
  bool framed_ = false;
  std::string frame_;
  int lines_ = 0;  // of the frame, without empty ones
  std::string messages_;
};

}  // namespace hyperrun::process
