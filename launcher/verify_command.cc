// hyperrun verify JOB: compares the job's layout with one device, tensor by tensor, without MPI.
#include <fmt/core.h>

#include <cstdio>
#include <optional>
#include <string>

#include "launcher/commands.h"
#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/report/table.h"
#include "runtime/run/text_data.h"
#include "runtime/spec/job_reader.h"
#include "runtime/verify/sweep.h"
#include "runtime/verify/verify.h"

namespace hyperrun {
namespace {

// Only the training is compared.
Job without_generation(Job job) {
  job.run.generate.tokens = 0;
  return job;
}

std::string title(const Job& job, std::int64_t steps) {
  std::string text = job.name + ": mesh";
  for (const MeshAxis& axis : job.parallel.mesh) text += fmt::format(" {}={}", axis.name, axis.size);
  if (job.parallel.mesh.empty()) text += " of one device";
  if (!job.parallel.presets.empty()) text += ", presets";
  for (const std::string& preset : job.parallel.presets) text += " " + preset;
  return text + fmt::format(", beside one device; seed {}, steps {}", job.run.seed, steps);
}

void print_summary(const Verification& v) {
  Table table({left(""), right("values"), right("worst difference"), right("allowed"), left("tensor")});
  for (std::size_t k = 0; k < kValueKinds; ++k) {
    const KindSummary& kind = v.kinds[k];
    table.row({std::string(name(static_cast<ValueKind>(k))), with_separators(kind.compared),
               describe_difference(kind.worst.difference), describe_difference(kind.worst.allowed),
               kind.worst.tensor});
  }
  std::printf("%s", table.str("  ").c_str());
  if (v.own_parts + v.others > 0)
    std::printf("  not compared, as one device has nothing like them: %d tensors\n", v.own_parts + v.others);
  if (v.noise > 0)
    std::printf("  not compared, as rounding alone may change them by half: %s values\n",
                with_separators(v.noise).c_str());
}

// The rows of experts are not cut into tiles: one device has them in one piece.
Verification verify_one(Job job, std::int64_t steps) {
  job.parallel.tiles = 1;
  const Compiled compiled = compile(job);
  check_fits(compiled.plan, job.supernode);
  return verify_layout(job, compiled, steps);
}

int verify_layout_of(const Job& job, std::int64_t steps) {
  std::printf("%s\n", title(job, steps).c_str());
  std::fflush(stdout);
  const Verification v = verify_one(job, steps);
  print_summary(v);
  if (v.first) throw divergence(job, v);
  std::printf("equal: %s values\n", with_separators(v.compared()).c_str());
  return 0;
}

int verify_random(const Job* base, const VerifyArguments& a) {
  verify_sweep({base, a.random, a.seed}, [&](const Job& job) { return verify_one(job, a.steps); });
  return 0;
}

}  // namespace

int verify_job(const VerifyArguments& arguments) {
  if (arguments.job.empty() && arguments.random == 0)
    throw Error(Code::kUsage, "verify needs a job, or --random for layouts and models of its own")
        .fix("hyperrun verify --help shows both");
  if (arguments.job.empty()) return verify_random(nullptr, arguments);
  const LoadedJob loaded = load_job(arguments.job);
  const Job job = without_generation(loaded.job);
  try {
    require_text(job);
    return arguments.random > 0 ? verify_random(&job, arguments) : verify_layout_of(job, arguments.steps);
  } catch (const Error& e) {
    std::fflush(stdout);
    throw at_job_line(e, loaded.source);
  }
}

}  // namespace hyperrun
