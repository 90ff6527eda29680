// hyperrun plan JOB: the best strategy for a model on a machine.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "launcher/commands.h"
#include "launcher/plan_words.h"
#include "launcher/status_line.h"
#include "launcher/writable.h"
#include "runtime/base/error.h"
#include "runtime/base/format.h"
#include "runtime/plan/search.h"
#include "runtime/report/table.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/job_writer.h"

namespace hyperrun {
namespace {

Search searched(const Job& job, const PlanArguments& arguments, const Space& space) {
  StatusLine status;
  SearchOptions options{.space = &space, .leaders = arguments.leaders};
  options.progress = [&](const std::string& what, std::int64_t count) {
    status.tell(with_separators(count) + " " + what);
  };
  return search(job, options);
}

// Nothing fits: how much is missing, and what would do.
Error does_not_fit(const Job& job, const Search& s) {
  Error error(Code::kDoesNotFit,
              "no strategy of " + with_separators(s.strategies) + " fits into the devices' memory");
  error.at("supernode.hbm");
  if (!s.nearest)
    return error.fix("take a batch, a sequence and widths that the devices divide: " +
                     with_separators(s.do_not_divide) + " strategies have layouts that do not divide");
  error.legal("at least " + to_string(s.nearest_needs) + " of HBM a device, " +
              to_string(s.nearest_needs - job.supernode.hbm) +
              " more than there is, for the one that needs least: " + words(*s.nearest));
  const double times =
      static_cast<double>(s.nearest_needs.value) / static_cast<double>(job.supernode.hbm.value);
  return error.fix(
      "raise supernode.hbm, give supernode.pool, make the model or the sequence smaller, or take about " +
      format("%.0f", std::ceil(times)) + " times as many devices");
}

void write_job(const Job& job, const std::string& path) {
  std::ofstream file(path);
  file << "# proto-file: proto/job.proto\n# proto-message: hyperrun.proto.Job\n"
       << to_textproto(job) << std::flush;
  if (!file)
    throw Error(Code::kUnwritable, "cannot write " + path)
        .at("--out")
        .fix("name a file in a folder that is there, has room and that you may write to");
}

// The best of each other space, beside ours.
void print_comparison(const Job& job, const PlanArguments& arguments, const Leader& best) {
  Table table({left("space"), left("its best"), right("step"), right("MFU"), right("ours is faster")});
  for (const Space& space : spaces()) {
    if (space.name == arguments.space) continue;
    const Search other = searched(job, arguments, space);
    if (!other.found()) {
      table.row({std::string(space.name), "nothing fits"});
      continue;
    }
    const Leader& first = other.leaders.front();
    table.row({std::string(space.name), words(first.strategy), time_words(first.simulated),
               percent_words(first.mfu), format("%.2fx", first.simulated / best.simulated)});
  }
  std::printf("\n%s", table.str().c_str());
}

}  // namespace

int plan_job(const PlanArguments& arguments) {
  const Space& space = space_named(arguments.space);
  if (!arguments.out.empty()) require_writable(arguments.out, "--out");
  const LoadedJob loaded = load_job(arguments.job);
  const Job& job = loaded.job;
  try {
    const Search s = searched(job, arguments, space);
    if (!s.found()) throw does_not_fit(job, s);
    if (!arguments.out.empty()) write_job(job_of(job, s.leaders.front().strategy), arguments.out);
    if (arguments.json) {
      std::printf("%s", plan_json({s, space, job.supernode.hbm}).c_str());
    } else if (arguments.csv) {
      std::printf("%s", plan_csv(s).c_str());
    } else {
      std::printf("%s", search_words(s).c_str());
      if (arguments.why) std::printf("%s", why_words(s, job.supernode.hbm).c_str());
      if (arguments.compare) print_comparison(job, arguments, s.leaders.front());
    }
  } catch (const Error& e) {
    throw at_job_line(e, loaded.source);
  }
  return 0;
}

}  // namespace hyperrun
