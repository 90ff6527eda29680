// hyperrun plan JOB: the best strategy for a model on a machine.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "launcher/commands.h"
#include "launcher/plan_proof.h"
#include "launcher/waiting_line.h"
#include "launcher/writable.h"
#include "runtime/base/error.h"
#include "runtime/base/format.h"
#include "runtime/plan/search.h"
#include "runtime/report/json.h"
#include "runtime/report/table.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/job_writer.h"

namespace hyperrun {
namespace {

std::string percent_of(double share) { return format("%.1f %%", 100 * share); }
std::string time_of(double nanos) { return to_string(Nanos(static_cast<std::int64_t>(nanos))); }
std::string share(Nanos part, double step) { return percent_of(static_cast<double>(part.value) / step); }

Search searched(const Job& job, const PlanArguments& arguments, const Space& space) {
  WaitingLine line;
  SearchOptions options{.space = &space, .leaders = arguments.leaders};
  options.progress = [&](const std::string& what, std::int64_t count) {
    line.show(with_separators(count) + " " + what);
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

Table ranking(const Search& s) {
  Table table({left("strategy"), right("step"), right("forecast"), right("MFU"), right("HBM"),
               right("compute"), right("exposed comm"), right("transfer"), right("bubble"),
               right("optimizer")});
  for (const Leader& l : s.leaders) {
    if (l.simulated == 0) {
      table.row({words(l.strategy), "refused", time_of(l.forecast.time)});
      continue;
    }
    table.row({words(l.strategy), time_of(l.simulated),
               format("%+.1f %%", 100 * (l.forecast.time / l.simulated - 1)), percent_of(l.mfu),
               to_string(l.hbm), share(l.parts.compute, l.simulated),
               share(l.parts.communication, l.simulated), share(l.parts.transfer, l.simulated),
               share(l.parts.bubble, l.simulated), share(l.parts.optimizer, l.simulated)});
  }
  return table;
}

void print_search(const Search& s) {
  std::printf(
      "%s strategies: %s with layouts that do not divide, %s that do not fit, %s bounded, %s forecast, %zu "
      "simulated\n\n",
      with_separators(s.strategies).c_str(), with_separators(s.do_not_divide).c_str(),
      with_separators(s.do_not_fit).c_str(), with_separators(s.bounded).c_str(),
      with_separators(s.forecast).c_str(), s.leaders.size());
  std::printf("%s", ranking(s).str().c_str());
  for (const Leader& l : s.leaders)
    if (l.simulated == 0) std::printf("refused: %s: %s\n", words(l.strategy).c_str(), l.why_not.c_str());
  std::printf("\nno strategy is more than %s faster than the first\n", percent_of(s.gap()).c_str());
}

void print_why(const Search& s, Bytes hbm) {
  const Leader& best = s.leaders.front();
  std::string dimension;
  for (const Verdict& v : verdicts(s.alternatives, best.strategy, best.forecast, hbm)) {
    if (v.dimension != dimension) std::printf("\n%s\n", v.dimension.c_str());
    dimension = v.dimension;
    std::printf("  %-12s %s\n", v.value.c_str(), v.sentence.c_str());
  }
}

Json to_json(const Leader& l) {
  Json json{{"strategy", words(l.strategy)}};
  for (const MeshAxis& axis : mesh_of(l.strategy)) json["mesh"][axis.name] = axis.size;
  json["micro_batches"] = l.micro_batches;
  json["forecast_ns"] = l.forecast.time;
  json["bound_ns"] = l.forecast.bound;
  if (l.simulated == 0) {
    json["refused"] = l.why_not;
    return json;
  }
  json["step_ns"] = l.simulated;
  json["mfu"] = l.mfu;
  json["hbm_bytes"] = l.hbm.value;
  json["pool_bytes"] = l.pool.value;
  json["parts_ns"] = {{"compute", l.parts.compute.value},
                      {"communication", l.parts.communication.value},
                      {"transfer", l.parts.transfer.value},
                      {"bubble", l.parts.bubble.value},
                      {"optimizer", l.parts.optimizer.value}};
  return json;
}

Json to_json(const Search& s, const Space& space, Bytes hbm) {
  Json json{{"space", space.name},
            {"strategies", s.strategies},
            {"do_not_divide", s.do_not_divide},
            {"do_not_fit", s.do_not_fit},
            {"bounded", s.bounded},
            {"forecast", s.forecast},
            {"gap", s.gap()}};
  for (const Leader& l : s.leaders) json["leaders"].push_back(to_json(l));
  if (!s.found()) return json;
  const Leader& best = s.leaders.front();
  for (const Verdict& v : verdicts(s.alternatives, best.strategy, best.forecast, hbm))
    json["why"].push_back(
        {{"dimension", v.dimension}, {"value", v.value}, {"chosen", v.chosen}, {"sentence", v.sentence}});
  return json;
}

void print_csv(const Search& s) {
  std::printf(
      "strategy,step_ns,forecast_ns,bound_ns,mfu,hbm_bytes,pool_bytes,compute_ns,communication_ns,transfer_"
      "ns,"
      "bubble_ns,optimizer_ns,refused\n");
  for (const Leader& l : s.leaders)
    std::printf("\"%s\",%.0f,%.0f,%.0f,%.4f,%lld,%lld,%lld,%lld,%lld,%lld,%lld,\"%s\"\n",
                words(l.strategy).c_str(), l.simulated, l.forecast.time, l.forecast.bound, l.mfu,
                static_cast<long long>(l.hbm.value), static_cast<long long>(l.pool.value),
                static_cast<long long>(l.parts.compute.value),
                static_cast<long long>(l.parts.communication.value),
                static_cast<long long>(l.parts.transfer.value), static_cast<long long>(l.parts.bubble.value),
                static_cast<long long>(l.parts.optimizer.value), l.why_not.c_str());
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
    table.row({std::string(space.name), words(first.strategy), time_of(first.simulated),
               percent_of(first.mfu), format("%.2fx", first.simulated / best.simulated)});
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
    std::optional<Proof> proof;
    if (arguments.prove > 0) proof = prove(job, space, arguments);
    if (arguments.json) {
      Json json = to_json(s, space, job.supernode.hbm);
      if (proof) json["proof"] = to_json(*proof);
      std::printf("%s\n", json.dump(2).c_str());
    } else if (arguments.csv) {
      print_csv(s);
    } else {
      print_search(s);
      if (arguments.why) print_why(s, job.supernode.hbm);
      if (arguments.compare) print_comparison(job, arguments, s.leaders.front());
      if (proof) std::printf("\n%s", to_text(*proof).c_str());
    }
    if (proof) require_proven(*proof);
  } catch (const Error& e) {
    throw at_job_line(e, loaded.source);
  }
  return 0;
}

}  // namespace hyperrun
