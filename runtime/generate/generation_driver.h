// Drives devices that generate: loads the weights, then runs passes until all prompts have their texts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/generate/completions.h"
#include "runtime/run/generation.h"
#include "runtime/run/session_driver.h"

namespace hyperrun {

// The times of one Program's passes: in the driver, from choosing a pass's requests to taking its tokens, and
// on the devices alone.
class PassTimes {
 public:
  void add(double seconds, std::span<const tasks::InvocationDone> results);
  // Prints medians to standard error, without the first pass if there are more: it touches its memory for the
  // first time.
  void print(const char* name) const;

 private:
  static double typical(const std::vector<double>& passes);

  std::vector<double> whole_, devices_;  // seconds, by pass
};

class GenerationDriver : public SessionDriver {
 public:
  // All must outlive the driver.
  GenerationDriver(const Session& session, Generation& generation, Completions& completions)
      : SessionDriver(session, nullptr), generation_(generation), completions_(completions) {}

  // Prints the times of generation to standard error, without starting and loading.
  void print_times() const;

 protected:
  std::optional<tasks::Invocation> next() override;
  void done(const tasks::Invocation& invocation, std::span<const tasks::InvocationDone> results) override;

 private:
  enum class Stage { kBegin, kLoad, kGenerate };

  Generation& generation_;
  Completions& completions_;
  Stage stage_ = Stage::kBegin;
  std::int64_t tokens_ = 0;
  double begun_ = 0, pass_begun_ = 0;
  double first_ = 0, last_ = 0;  // times of the first and the last token since begun_, s
  PassTimes prefill_, decode_;
};

}  // namespace hyperrun
