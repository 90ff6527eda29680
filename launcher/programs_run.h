// A run of several programs: everything that can be refused is refused before a rank starts.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "launcher/programs_driver.h"
#include "launcher/programs_recorder.h"
#include "launcher/run.h"
#include "runtime/model/text/tokenizer.h"
#include "runtime/report/run_directory.h"

namespace hyperrun {

class ProgramsRun : public Run {
 public:
  const Job& job() const final { return loaded_.job; }
  void prepare(int local_ranks) final;
  int execute(const std::function<control::Outcome(tasks::Driver&)>& drive) final;

 protected:
  // Throws kBadValue where programs would each find a dilation of their own.
  ProgramsRun(const RunArguments& arguments, LoadedJob loaded);
  const LoadedJob& loaded() const { return loaded_; }

  virtual std::vector<Session>& sessions() = 0;
  virtual const Tokenizer& tokenizer() const = 0;
  // They get their directories, once there is that of the run.
  virtual void settle_sessions(const RunDirectory& directory) = 0;
  virtual void announce() const = 0;

  struct Driven {
    std::unique_ptr<ProgramsRecorder> recorder;
    std::unique_ptr<ProgramsDriver> driver;
  };
  virtual Driven driven(RecorderOutputs outputs) = 0;

  // What is known of a report before anything runs.
  void fill(ProgramsReport& report, std::int64_t parameters) const;

 private:
  void write_manifest(const ProgramsRecorder& recorder, const control::Outcome* outcome) const;

  const RunArguments& arguments_;
  LoadedJob loaded_;
  Nanos started_;
  std::optional<RunDirectory> directory_;
};

}  // namespace hyperrun
