#include "runtime/forecast/sim_reinforcement.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "runtime/advise/job_warnings.h"
#include "runtime/base/error.h"
#include "runtime/compose/programs.h"
#include "runtime/device/output_arrays.h"
#include "runtime/forecast/range.h"
#include "runtime/forecast/sim_programs.h"
#include "runtime/inference/requests_io.h"
#include "runtime/rank/protocol.h"
#include "runtime/report/describe_range.h"
#include "runtime/report/reinforcement.h"
#include "runtime/run/device_use.h"
#include "runtime/run/reinforcement_driver.h"
#include "runtime/run/reinforcement_inputs.h"
#include "runtime/sim/simulate.h"
#include "runtime/spec/stats_io.h"
#include "runtime/tasks/virtual_devices.h"

namespace hyperrun {
namespace {

constexpr std::int32_t kSteps = 32;

struct Lengths {
  std::int64_t least = 1, most = 1;
};

// Parses --lengths, "LEAST:MOST". If it is empty: from 1 to the most tokens that the job allows.
Lengths lengths_of(const std::string& text, std::int64_t allowed) {
  Lengths lengths{1, allowed};
  if (text.empty()) return lengths;
  const char* const end = text.data() + text.size();
  const auto least = std::from_chars(text.data(), end, lengths.least);
  const bool colon = least.ec == std::errc() && least.ptr != end && *least.ptr == ':';
  const auto most = colon ? std::from_chars(least.ptr + 1, end, lengths.most) : least;
  if (!colon || most.ec != std::errc() || most.ptr != end || lengths.least < 1 ||
      lengths.least > lengths.most || lengths.most > allowed)
    throw Error(Code::kUsage, fmt::format("\"{}\" are no lengths of completions", text))
        .at("--lengths")
        .legal(fmt::format("LEAST:MOST, tokens, from 1 to the job's reinforcement.tokens, {}", allowed))
        .fix(fmt::format("such as --lengths 1:{}", allowed));
  return lengths;
}

// The work of virtual devices that compute nothing. A completion ends when it has its drawn length.
class SimulatedWork : public tasks::VirtualWork {
 public:
  SimulatedWork(const Job& job, const ProgramSessions& programs, Lengths lengths, const Tokenizer& tokenizer)
      : job_(job), programs_(programs), lengths_(lengths), end_(tokenizer.end_of_text()) {
    const std::vector<std::int32_t> ends = ends_of_completions(tokenizer);
    while (std::ranges::count(ends, other_) > 0) ++other_;
  }

  // The simulated duration of a Program. Saving and loading a checkpoint takes no time.
  Nanos lasts(const tasks::Invocation& invocation) override {
    if (!is_of_the_plan(invocation)) return {};
    const auto [known, fresh] = lasts_.try_emplace(invocation.program);
    if (fresh) known->second = makespan(plan_of(invocation), name_of(invocation), job_.supernode);
    return known->second;
  }

  std::vector<tasks::InvocationDone> done(const tasks::Invocation& invocation, Nanos begin,
                                          Nanos end) override {
    const std::size_t session = session_of(invocation);
    InvocationStats stats;
    stats.begin = begin.value, stats.end = end.value;
    const tasks::InvocationDone one{
        invocation.id, {{"loss", 0}, {"grad_norm", 0}, {"kl", 0}, {"clipped", 0}}, to_bytes(stats, 0, false)};
    std::vector<tasks::InvocationDone> results(programs_.groups[session].size(), one);
    if (!is_of_the_plan(invocation)) return results;
    if (session == programs_.generates) tell(invocation, "token", drawn(invocation), results);
    if (session == programs_.generates || session == programs_.scores)
      tell(invocation, "logp", zeros(invocation, "logp"), results);
    return results;
  }

  // The durations of the Programs that have run, by number.
  const std::map<std::int32_t, Nanos>& durations() const { return lasts_; }
  std::string describe_program(std::int32_t program) const {
    const tasks::Invocation of{.program = program};
    return fmt::format("{} {}", programs_.sessions[session_of(of)].name, name_of(of));
  }

 private:
  static std::size_t session_of(const tasks::Invocation& invocation) {
    return static_cast<std::size_t>(invocation.program / kProgramsOfASession);
  }
  static std::size_t place_of(const tasks::Invocation& invocation) {
    return static_cast<std::size_t>(invocation.program % kProgramsOfASession);
  }
  // False for what devices have besides their plans' Programs: saving and loading.
  bool is_of_the_plan(const tasks::Invocation& invocation) const {
    return place_of(invocation) < plan_of(invocation).roles.front().programs.size();
  }
  const Plan& plan_of(const tasks::Invocation& invocation) const {
    return programs_.sessions[session_of(invocation)].plan;
  }
  std::string_view name_of(const tasks::Invocation& invocation) const {
    return plan_of(invocation).roles.front().programs[place_of(invocation)].name;
  }

  std::vector<std::int32_t> drawn(const tasks::Invocation& invocation) {
    const Requests requests = requests_from_bytes(invocation.data);
    std::vector<std::int32_t> tokens;
    for (std::size_t row = 0; row < requests.rows.size(); row += static_cast<std::size_t>(requests.width))
      tokens.push_back(next_token(requests.rows.data() + row));
    return tokens;
  }

  // The next token of a completion: its end once the drawn length is reached. A token drawn in the middle of
  // a prompt is dropped by the driver, so it may be any.
  std::int32_t next_token(const std::int32_t* row) {
    if (row[kRequestCount] == 0) return other_;
    const std::int32_t id = row[kRequestId];
    std::minstd_rand random(static_cast<unsigned>(id) + 1 +
                            static_cast<unsigned>(job_.run.seed) * 2654435761U);
    random.discard(2);
    const auto length = std::uniform_int_distribution<std::int64_t>(lengths_.least, lengths_.most)(random);
    std::int64_t& grown = grown_[id];
    if (row[kRequestStart] == 0) grown = 0;
    return ++grown == length ? end_ : other_;
  }

  std::vector<float> zeros(const tasks::Invocation& invocation, std::string_view name) const {
    std::int64_t n = 0;
    for (const Role& role : plan_of(invocation).roles)
      for (const Output& o : role.programs[place_of(invocation)].outputs)
        if (o.name == name)
          n = std::accumulate(o.shape.begin(), o.shape.end(), std::int64_t{1}, std::multiplies<>());
    return std::vector<float>(static_cast<std::size_t>(n));
  }

  template <class T>
  void tell(const tasks::Invocation& invocation, const char* name, const std::vector<T>& values,
            std::vector<tasks::InvocationDone>& results) const {
    const auto parts =
        split_output(plan_of(invocation), place_of(invocation), name, std::as_bytes(std::span(values)));
    for (std::size_t d = 0; d < results.size(); ++d) results[d].data += to_bytes(parts[d]);
  }

  const Job& job_;
  const ProgramSessions& programs_;
  Lengths lengths_;
  std::int32_t end_, other_ = 0;                // the token that ends a completion, and one that does not
  std::map<std::int32_t, Nanos> lasts_;         // duration, by number of the Program
  std::map<std::int32_t, std::int64_t> grown_;  // number of tokens, by completion
};

struct SimulatedRun {
  ReinforcementReport report;
  std::string text;
  std::vector<std::pair<std::string, Nanos>> durations;  // by name of the Program, in the order of numbers

  Nanos step() const {
    const auto steps = static_cast<double>(std::max<std::int64_t>(1, report.steps));
    return Nanos(std::llround(report.seconds * 1e9 / steps));
  }
};

SimulatedRun simulate_run(const Job& job, const ProgramSessions& programs, const ReinforcementInputs& inputs,
                          Lengths lengths, const std::string& trace) {
  tasks::VirtualDevices devices(job.supernode.devices);
  ReinforcementReport report;
  report.job = job.name;
  report.parameters = parameters(programs.sessions[programs.trains].plan);
  report.devices = job.supernode.devices;
  report.clock = "simulated";
  ReinforcementRecorder recorder(std::move(report),
                                 {.trace = trace, .quiet = true, .now = [&] { return devices.now(); }});
  ReinforcementDriver driver(job, programs, inputs.tasks, inputs.tokenizer, recorder);
  SimulatedWork work(job, programs, lengths, inputs.tokenizer);
  tasks::drive(driver, devices, work, tasks::kWindow);
  recorder.finish();
  SimulatedRun done{recorder.report(), recorder.text(), {}};
  for (const auto& [program, lasts] : work.durations())
    done.durations.emplace_back(work.describe_program(program), lasts);
  return done;
}

void print_tables(const Job& job, const SimulatedRun& known, Lengths lengths) {
  std::printf("%s: %d devices, simulated; completions of %lld to %lld tokens, evenly drawn\n\n%s",
              job.name.c_str(), job.supernode.devices, static_cast<long long>(lengths.least),
              static_cast<long long>(lengths.most), known.text.c_str());
  std::printf("\nwhat lasts how long\n");
  for (const auto& [program, lasts] : known.durations)
    std::printf("  %-28s %s\n", program.c_str(), to_string(lasts).c_str());
}

void simulate(const LoadedJob& loaded, const SimArguments& arguments) {
  Job job = loaded.job;
  const Lengths lengths = lengths_of(arguments.lengths, job.reinforcement.tokens);
  ReinforcementInputs inputs = read_reinforcement_inputs(loaded);
  const ProgramSessions programs = sessions_of(job, compile_programs(job));
  print_warnings(warnings_of_learner(loaded));
  inputs.tasks.held_back.clear();
  job.training.steps = job.training.steps == 0 ? kSteps : std::min(job.training.steps, kSteps);
  job.run.resume.clear();
  job.run.checkpoint_every = 0;
  SimulatedRun known = simulate_run(job, programs, inputs, lengths, arguments.trace);
  if (!arguments.json) {
    print_tables(job, known, lengths);
    print_trace(arguments);
    std::fflush(stdout);
  }
  known.report.range = range_of(arguments, job.supernode, [&](const SupernodeSpec& there) {
    Job other = job;
    other.supernode = there;
    return simulate_run(other, programs, inputs, lengths, "").step();
  });
  if (arguments.json)
    std::printf("%s", to_json(known.report).c_str());
  else if (known.report.range)
    std::printf("%s", describe_range(*known.report.range).c_str());
}

}  // namespace

int simulate_reinforcement(const LoadedJob& loaded, const SimArguments& arguments) {
  return simulate_tasks(loaded, arguments, [&] { simulate(loaded, arguments); });
}

}  // namespace hyperrun
