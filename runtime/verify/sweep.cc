#include "runtime/verify/sweep.h"

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

#include "runtime/base/error.h"
#include "runtime/model/checkpoint/files.h"
#include "runtime/report/table.h"
#include "runtime/spec/job_writer.h"
#include "runtime/verify/random_job.h"

namespace hyperrun {
namespace {

class Sweeping {
 public:
  Sweeping(const Sweep& sweep, const std::function<Verification(const Job&)>& verify)
      : sweep_(sweep), verify_(verify) {}

  void run() {
    for (int i = 0; i < sweep_.count; ++i) {
      const std::uint64_t seed = sweep_.seed + static_cast<std::uint64_t>(i);
      const Job job = random_job(seed, sweep_.base);
      std::printf("%d of %d, seed %llu: ", i + 1, sweep_.count, static_cast<unsigned long long>(seed));
      std::fflush(stdout);
      std::printf("%s; %s\n", result(job).c_str(), to_line(job).c_str());
    }
    std::fflush(stdout);
    if (first_) throw *first_;
    std::printf("equal: %d layouts, %s values\n", sweep_.count, with_separators(values_).c_str());
  }

 private:
  std::string result(const Job& job) {
    const std::string file = job.name + ".textproto";
    write_file(file, to_textproto(job));
    try {
      const Verification v = verify_(job);
      if (v.first) throw divergence(job, v);
      std::filesystem::remove(file);
      values_ += v.compared();
      return "equal, " + with_separators(v.compared()) + " values, worst " +
             describe_difference(v.worst().difference) + " of " + describe_difference(v.worst().allowed) +
             " in " + v.worst().tensor;
    } catch (const Error& e) {
      return failure(file, e);
    }
  }

  std::string failure(const std::string& file, const Error& e) {
    Error told(e.code(), e.cause());
    told.at(e.place()).legal(e.legal()).fix("report it with " + file + "; hyperrun verify " + file +
                                            " repeats it");
    if (!first_) first_ = std::move(told);
    return std::string(name(e.code())) + " at " + e.place() + ", see " + file;
  }

  const Sweep& sweep_;
  const std::function<Verification(const Job&)>& verify_;
  std::optional<Error> first_;
  std::int64_t values_ = 0;
};

}  // namespace

void verify_sweep(const Sweep& sweep, const std::function<Verification(const Job&)>& verify) {
  Sweeping(sweep, verify).run();
}

}  // namespace hyperrun
