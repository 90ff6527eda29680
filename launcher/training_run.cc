// A run of one program: a training, and what it generates at its end.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "launcher/mpi_start.h"
#include "launcher/resume.h"
#include "launcher/run.h"
#include "launcher/run_manifest.h"
#include "launcher/text_data.h"
#include "launcher/training_driver.h"
#include "memory/shared_window.h"
#include "runtime/advise/fit.h"
#include "runtime/advise/job_warnings.h"
#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/shrink.h"
#include "runtime/ir/shrink.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/spec/job_writer.h"

namespace hyperrun {
namespace {

namespace fs = std::filesystem;

// The model to whose scale a smaller one runs.
std::string in_words(const Job& full) {
  const Job original = with_fewer_layers(full);
  const ModelSpec& m = original.model;
  return "a " + m.name + " of " + std::to_string(m.layers) + " layers, hidden " + std::to_string(m.hidden) +
         ", " + std::to_string(original.training.batch) + " x " + std::to_string(m.sequence) + " tokens";
}

class TrainingRun : public Run {
 public:
  TrainingRun(const RunArguments& arguments, LoadedJob loaded)
      : arguments_(arguments), loaded_(std::move(loaded)), started_(unix_time()) {
    try {
      compile_job();
    } catch (const Error& e) {
      throw at_job_line(e, loaded_.source);
    }
  }

  // The small one, where another is executed to scale.
  const Job& job() const override { return session_.job; }

  void prepare(int local_ranks) override {
    const fs::path directory = fs::absolute(expand_directory(job().run.directory, job().name, started_));
    check_room(local_ranks, directory);
    // A handler, as SIG_IGN would be handed on to mpirun.
    std::signal(SIGPIPE, [](int) {});
    TextData text = [&] {
      try {
        TextData prepared = prepare_text(job());
        session_.prompt = encode_prompt(job(), prepared.tokenizer);
        return prepared;
      } catch (const Error& e) {
        throw at_job_line(e, loaded_.source);
      }
    }();
    directory_ = RunDirectory::create(directory);
    if (!directory_->notice().empty()) std::printf("%s\n", directory_->notice().c_str());
    session_.run_directory = directory_->path();
    session_.tokens = directory_->file("tokens.bin");
    try {
      write_tokens(session_.tokens, text.tokens);
    } catch (const Error&) {  // nothing has begun: nothing stays
      std::error_code shown_by_the_error;
      fs::remove(directory_->path(), shown_by_the_error);
      throw;
    }
    write_tokenizer(text.tokenizer, directory_->file("tokenizer.json"));
    session_.checkpoint_files = {
        {"config.json", to_config_json(checkpoint_config(job(), text.tokenizer))},
        {"tokenizer.json", read_file(directory_->file("tokenizer.json"), Code::kBadCorpus)}};
    directory_->write(kJobFile, to_textproto(loaded_.job));
    tokenizer_.emplace(std::move(text.tokenizer));
    recorder_.emplace(session_.job, session_.plan, *directory_, arguments_.quiet);
    write_manifest(nullptr);
  }

  int execute(const std::function<control::Outcome(tasks::Driver&)>& drive) override {
    TrainingDriver driver(session_, first_step_, *recorder_);
    announce();
    const control::Outcome outcome = drive(driver);
    recorder_->finish();
    fs::remove(session_.tokens);
    write_manifest(&outcome);
    if (outcome.all_done) conclude(driver);
    if (!outcome.ok()) {
      std::fflush(stdout);
      if (outcome.signal != 0) std::fprintf(stderr, "%s\n", outcome.reason().c_str());
      std::fprintf(stderr, "what the run left is in %s\n", directory_->path().c_str());
    }
    return outcome.exit_status();
  }

 private:
  void compile_job() {
    require_text(loaded_.job);
    session_.job = loaded_.job;
    Compiled compiled = compile(job());
    session_.plan = std::move(compiled.plan);
    tell(warnings_of(loaded_, compiled.training));
    require_fit(loaded_, session_.plan);
    if (loaded_.job.run.shrink != ShrinkSpec{}) {
      Scaled scaled = compile_to_scale(job(), session_.plan.peak());
      session_.job = std::move(scaled.job);
      session_.plan = std::move(scaled.plan);
      session_.original = std::move(scaled.original);
    }
    if (job().run.resume.empty()) return;
    first_step_ = check_resume(job(), session_.plan);
  }

  void check_room(int local_ranks, const fs::path& directory) const {
    try {
      require_room_for_hbm(job(), local_ranks);
    } catch (Error& e) {
      const std::int64_t each = largest_arena(free_shared_memory(), local_ranks).value / kMiB.value;
      if (const Bytes peak = session_.plan.peak(); peak <= kMiB * each)
        e.legal("up to \"" + std::to_string(each) + " MiB\"; the job needs " + to_string(peak));
      throw e.at(loaded_.source.place("supernode.hbm"));
    }
    try {
      require_room_for_pool(job(), session_.plan, local_ranks);
    } catch (Error& e) {
      throw e.at(loaded_.source.place("supernode.pool"));
    }
    require_room_for_flash(job(), session_.plan, local_ranks, directory);
  }

  void announce() const {
    const Job& j = job();
    std::printf("%s: %lld parameters on %d devices (", j.name.c_str(),
                static_cast<long long>(recorder_->report().parameters), j.supernode.devices);
    for (std::size_t a = 0; a < j.parallel.mesh.size(); ++a)
      std::printf("%s%s %d", a ? " x " : "", j.parallel.mesh[a].name.c_str(), j.parallel.mesh[a].size);
    std::printf(")\n%d steps of %d x %d tokens, HBM %s of %s each\n", j.training.steps, j.training.batch,
                j.model.sequence, to_string(session_.plan.peak()).c_str(),
                to_string(j.supernode.hbm).c_str());
    if (session_.original)
      std::printf("to scale: instructions last as long as those of %s, which takes %s of %s\n",
                  in_words(loaded_.job).c_str(), to_string(session_.original->peak()).c_str(),
                  to_string(loaded_.job.supernode.hbm).c_str());
    if (!j.run.resume.empty()) std::printf("%s", start_words(j, session_.plan, first_step_).c_str());
    std::fflush(stdout);
  }

  void conclude(const TrainingDriver& driver) {
    if (job().run.generate.tokens > 0) {
      const std::string text = tokenizer_->decode(driver.generated());
      directory_->write("generated.txt", text + "\n");
      std::printf("\n%s\n\n", valid_utf8(text).c_str());
    }
    std::printf("%s", to_text(recorder_->report()).c_str());
    std::printf("run directory: %s\n", directory_->path().c_str());
    std::fflush(stdout);
  }

  void write_manifest(const control::Outcome* outcome) const {
    directory_->write(kManifestFile,
                      to_json(manifest_of(job(), arguments_, recorder_->hosts(), started_, outcome)));
  }

  const RunArguments& arguments_;
  LoadedJob loaded_;
  Nanos started_;
  Session session_;
  std::int64_t first_step_ = 0;
  std::optional<RunDirectory> directory_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<Recorder> recorder_;
};

}  // namespace

std::unique_ptr<Run> make_training_run(const RunArguments& arguments, LoadedJob loaded) {
  return std::make_unique<TrainingRun>(arguments, std::move(loaded));
}

}  // namespace hyperrun
