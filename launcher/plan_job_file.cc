#include "launcher/plan_job_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>

#include "runtime/base/divisors.h"
#include "runtime/base/error.h"
#include "runtime/compose/shrink.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/report/plan/text.h"
#include "runtime/report/writable.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/job_writer.h"

namespace hyperrun {
namespace {

bool can_be_executed_to_scale(const Job& job, const std::string& path, Bytes peak) {
  try {
    compile_to_scale(parse_job(to_textproto(job), path, JobUse::kToBeForeseen).job, peak);
    return true;
  } catch (const Error& e) {
    if (e.code() == Code::kInternal) throw;
    return false;
  }
}

// Lowers the divisors of run.shrink, one after the other, until the job can be executed to scale. They were
// chosen for the job's own strategy. Another strategy has stages of other lengths, and may split dimensions
// further than the divisors allow.
Job with_feasible_scale(Job job, const std::string& path, Bytes peak) {
  ShrinkSpec& by = job.run.shrink;
  if (by == ShrinkSpec{}) return job;
  for (const PipelineSpec::Stage& stage : job.parallel.pipeline.stages)
    by.depth = std::gcd(by.depth, stage.layers);
  const std::array<std::int32_t*, 4> sizes{&by.sequence, &by.width, &by.batch, &by.vocab};
  for (std::size_t next = 0; !can_be_executed_to_scale(job, path, peak); ++next) {
    const auto larger = [](const std::int32_t* size) { return *size > 1; };
    if (std::ranges::none_of(sizes, larger)) break;
    while (*sizes[next % sizes.size()] == 1) ++next;
    std::int32_t& size = *sizes[next % sizes.size()];
    size /= static_cast<std::int32_t>(divisors(size)[1]);
  }
  return job;
}

std::string marked_text(const Job& job, const SimulatedCandidate& best) {
  return std::string(kPlanMark) + describe(best.strategy) + "; " + time_text(best.simulated) +
         " a step (simulated)\n" + to_textproto(job);
}

}  // namespace

std::string planned_job(const Job& job, const SimulatedCandidate& best, const std::string& path) {
  return marked_text(with_feasible_scale(job_of(job, best.strategy), path, best.hbm), best);
}

// A symbolic link is followed, so that the file that it names is replaced and not the link.
void write_whole(const std::string& path, const std::string& option, const std::string& text) try {
  std::error_code unseen;
  const std::filesystem::path target = std::filesystem::weakly_canonical(path, unseen);
  write_file(unseen ? std::filesystem::path(path) : target, text);
} catch (const Error& e) {
  throw at_option(option, Error(e.code(), e.cause()).at(path));
}

}  // namespace hyperrun
