#include "launcher/recorder.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "launcher/tracing.h"
#include "runtime/compile/schedule.h"
#include "runtime/ir/live_bytes.h"
#include "runtime/report/loss_chart.h"

namespace hyperrun {
namespace {

double exposed_share(std::span<const InvocationStats> stats) {
  double share = 0;
  for (const InvocationStats& s : stats)
    share += static_cast<double>(s.exposed.value) /
             static_cast<double>(std::max<std::int64_t>(1, s.end - s.begin));
  return share / static_cast<double>(stats.size());
}

// To what the list has of the same kind.
template <class Use>
void add(std::vector<Use>& list, const Use& use, auto kind) {
  const auto known = std::ranges::find_if(list, [&](const Use& u) { return kind(u) == kind(use); });
  if (known == list.end()) return list.push_back(use);
  known->count += use.count;
  known->bytes += use.bytes;
  if constexpr (requires { use.exposed; }) known->time += use.time, known->exposed += use.exposed;
}

}  // namespace

std::string mesh_text(const Mesh& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh.axes)
    text += (text.empty() ? "" : " x ") + axis.name + " " + std::to_string(axis.size);
  return text;
}

std::int64_t parameters(const Plan& plan) {
  std::int64_t total = 0;
  std::set<std::string_view> counted;  // a tied weight lies in two stages
  for (const Role& role : plan.roles)
    for (const StateTensor& t : role.state) {
      if (t.cls != TensorClass::kWeight || !counted.insert(t.name).second) continue;
      std::int64_t n = 1;
      for (std::int64_t size : t.shape) n *= size;
      total += n;
    }
  return total;
}

namespace {

// Entered in the categories' own order, whichever was met first.
CategoryUse& category(std::vector<CategoryUse>& list, Category c) {
  auto place = list.begin();
  for (int earlier = 0; earlier < static_cast<int>(c); ++earlier)
    if (place != list.end() && place->category == name(static_cast<Category>(earlier))) ++place;
  if (place != list.end() && place->category == name(c)) return *place;
  return *list.insert(place, CategoryUse{std::string(name(c)), {}, {}});
}

// Of all invocations the fullest moment counts, with what was there then.
void add_live(const InvocationStats& s, TierUse& tier) {
  Bytes so_far{};
  for (const CategoryUse& use : tier.categories) so_far += use.executed;
  if (s.live_peak <= so_far) return;
  for (CategoryUse& use : tier.categories) use.executed = Bytes(0);
  for (std::size_t c = 0; c < kCategories; ++c)
    if (s.live_at_peak[c].value > 0)
      category(tier.categories, static_cast<Category>(c)).executed = s.live_at_peak[c];
}

void add_memory(const InvocationStats& s, DeviceReport& device) {
  for (TierUse& tier : device.tiers)
    for (std::size_t t = 0; t < kTiers; ++t)
      if (tier.tier == name(static_cast<Tier>(t)))
        tier.executed_peak = std::max(tier.executed_peak, s.high_water[t]);
  add_live(s, device.tiers.front());
}

}  // namespace

void add_steps(const InvocationStats& s, DeviceReport& device, std::int64_t steps) {
  device.time += Nanos(s.end - s.begin) * steps;
  device.exposed_communication += s.exposed * steps;
  for (std::size_t i = 0; i < kStreams; ++i) device.streams[i].busy += s.busy[i] * steps;
  add_memory(s, device);
  for (std::size_t k = 0; k < s.traffic.size(); ++k) {
    const Traffic& t = s.traffic[k];
    const UnderWay u = s.under_way.empty() ? UnderWay{} : s.under_way[k];
    if (t.kind.collective == "prefetch" || t.kind.collective == "store")
      add(device.transfers,
          {t.kind.collective, t.kind.axes, t.count * steps, t.bytes * steps, t.elsewhere * steps},
          [](const TransferUse& u) { return std::tie(u.transfer, u.tier); });
    else
      add(device.collectives,
          {t.kind.collective, t.kind.axes, t.count * steps, t.bytes * steps, u.time * steps,
           u.exposed * steps},
          [](const CollectiveUse& u) { return std::tie(u.collective, u.axis); });
  }
}

namespace {

std::vector<const Program*> all_programs(const Role& role) {
  std::vector<const Program*> all;
  for (const Program& p : role.programs) all.push_back(&p);
  return all;
}

// What these of a role's programs need, in place of what was planned before.
void set_planned(DeviceReport& device, std::span<const Program* const> programs) {
  for (TierUse& tier : device.tiers) {
    tier.planned_peak = Bytes(0);
    for (std::size_t t = 0; t < kTiers; ++t)
      if (tier.tier == name(static_cast<Tier>(t)))
        for (const Program* p : programs) tier.planned_peak = std::max(tier.planned_peak, p->peak[t]);
  }
  PeakUse most;
  for (const Program* p : programs)
    if (const PeakUse use = peak_use(*p); use.bytes > most.bytes) most = use;
  std::vector<CategoryUse>& categories = device.tiers.front().categories;
  for (CategoryUse& use : categories) use.planned = Bytes(0);
  for (std::size_t c = 0; c < kCategories; ++c)
    if (most.by_category[c].value > 0)
      category(categories, static_cast<Category>(c)).planned = most.by_category[c];
  std::erase_if(categories, [](const CategoryUse& u) { return u.planned == u.executed && !u.planned.value; });
}

}  // namespace

DeviceReport planned_use(const Job& job, const Role& role) {
  DeviceReport device;
  device.tiers.push_back({"hbm", job.supernode.hbm, Bytes(0), Bytes(0), {}});
  for (const auto& [tier, budget] :
       {std::pair{Tier::kPool, job.supernode.pool}, {Tier::kFlash, job.supernode.flash}})
    if (role.peak(tier).value > 0)
      device.tiers.push_back({std::string(name(tier)), budget / job.supernode.devices, {}, {}, {}});
  set_planned(device, all_programs(role));
  return device;
}

Recorder::Recorder(const Job& job, const Plan& plan, const RunDirectory& directory, bool quiet)
    : job_(job), plan_(plan), directory_(directory), metrics_(directory.file(kMetricsFile)) {
  if (!quiet) progress_.emplace(ProgressOptions{.steps = job.training.steps});
  report_.job = job.name;
  report_.parameters = parameters(plan);
  if (job.run.trace_steps > 0) trace_ = std::make_unique<TraceWriter>(directory.file(kTraceFile));
}

void Recorder::begin(const std::vector<tasks::DeviceInfo>& devices) {
  for (const tasks::DeviceInfo& d : devices) {
    hosts_.push_back(d.host);
    DeviceReport device = planned_use(job_, plan_.of_device(d.rank));
    device.device = d.rank;
    device.host = d.host;
    for (std::size_t s = 0; s < kStreams; ++s)
      device.streams.push_back({std::string(name(static_cast<StreamKind>(s))), {}});
    report_.devices.push_back(std::move(device));
    if (trace_) trace_->device(d.rank, d.host);
  }
}

void Recorder::step(std::int64_t step, double loss, double grad_norm, std::span<const InvocationStats> stats,
                    bool traced) {
  std::int64_t begin = stats[0].begin, end = stats[0].end;
  Bytes peak{};
  for (const InvocationStats& s : stats) {
    begin = std::min(begin, s.begin);
    end = std::max(end, s.end);
    peak = std::max(peak, s.high_water[index_of(Tier::kHbm)]);
  }
  if (last_end_ == 0) start_ = begin;
  const Nanos time(end - (last_end_ == 0 ? begin : last_end_));
  last_end_ = end;

  StepMetrics m;
  m.step = step + 1;
  m.loss = loss;
  m.grad_norm = grad_norm;
  m.tokens = std::int64_t{job_.training.batch} * job_.model.sequence;
  m.tokens_per_second = static_cast<double>(m.tokens) / (static_cast<double>(time.value) * 1e-9);
  m.step_time = time;
  m.hbm_peak = peak;
  m.hbm_budget = job_.supernode.hbm;
  m.exposed_communication = exposed_share(stats);
  m.lr = learning_rate(job_.training, step);
  m.time = Nanos(end);
  has_run("train");
  metrics_.write(m);
  if (progress_) progress_->update(m);
  add_to_report(step, loss, grad_norm, stats, time);
  if (traced && trace_) add_to_trace(step, stats);
}

void Recorder::ran(const std::string& program, std::span<const InvocationStats> stats) {
  has_run(program);
  for (std::size_t d = 0; d < stats.size(); ++d) add_memory(stats[d], report_.devices[d]);
}

// Planned beside executed is of the same programs.
void Recorder::has_run(const std::string& program) {
  if (!have_run_.insert(program).second) return;
  for (DeviceReport& device : report_.devices) {
    std::vector<const Program*> programs;
    for (const std::string& p : have_run_) programs.push_back(&plan_.of_device(device.device).program(p));
    set_planned(device, programs);
  }
}

void Recorder::add_to_report(std::int64_t step, double loss, double grad_norm,
                             std::span<const InvocationStats> stats, Nanos time) {
  report_.time += time;
  report_.tokens += std::int64_t{job_.training.batch} * job_.model.sequence;
  report_.steps.push_back({step + 1, loss, grad_norm, time});
  for (std::size_t d = 0; d < stats.size(); ++d) add_steps(stats[d], report_.devices[d], 1);
}

void Recorder::add_to_trace(std::int64_t step, std::span<const InvocationStats> stats) {
  trace_->instant(kAllDevices, "step " + std::to_string(step + 1), Nanos(stats[0].begin - start_));
  for (std::size_t d = 0; d < stats.size(); ++d)
    add_invocation(*trace_, plan_.of_device(static_cast<std::int64_t>(d)).program("train"),
                   static_cast<int>(d), step, stats[d], start_);
}

void Recorder::print(const std::string& line) {
  if (progress_) progress_->print(line);
}

void Recorder::finish() {
  if (finished_) return;
  finished_ = true;
  if (progress_) progress_->finish();
  if (trace_) trace_->close();
  directory_.write(kReportFile, to_json(report_));
  LossChart chart{
      job_.name, std::to_string(report_.parameters) + " parameters, " + mesh_text(plan_.mesh), {}};
  for (const StepReport& s : report_.steps) chart.points.push_back({s.step, s.loss.value_or(0)});
  directory_.write(kLossFile, to_svg(chart));
}

}  // namespace hyperrun
