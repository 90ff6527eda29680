#include "launcher/plan_job_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>

#include "launcher/writable.h"
#include "runtime/base/divisors.h"
#include "runtime/base/error.h"
#include "runtime/compile/shrink.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/report/plan/words.h"
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

// The divisors of a job that is executed to scale were chosen for its own strategy. Another strategy's stages
// have other layers, and its axes split more, so divisors that do not go are lowered one after the other.
Job with_a_scale_that_goes(Job job, const std::string& path, Bytes peak) {
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

std::string text_of(const Job& job, const Leader& best) {
  return std::string(kPlanMark) + words(best.strategy) + "; " + describe_time(best.simulated) +
         " a step (simulated)\n" + to_textproto(job);
}

}  // namespace

std::string planned_job(const Job& job, const Leader& best, const std::string& path) {
  return text_of(with_a_scale_that_goes(job_of(job, best.strategy), path, best.hbm), best);
}

// A link is followed: the file that it names is written.
void write_whole(const std::string& path, const std::string& option, const std::string& text) try {
  std::error_code unseen;
  const std::filesystem::path target = std::filesystem::weakly_canonical(path, unseen);
  write_file(unseen ? std::filesystem::path(path) : target, text);
} catch (const Error& e) {
  throw at_option(option, Error(e.code(), e.cause()).at(path));
}

}  // namespace hyperrun
