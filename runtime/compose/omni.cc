#include "runtime/compose/omni.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/generation.h"
#include "runtime/compose/colocate.h"
#include "runtime/compose/port_exchange.h"
#include "runtime/compose/submodel.h"
#include "runtime/ir/programs.h"

namespace hyperrun {
namespace {

// The Programs of an encoder that are sent to one replica at a time.
const std::vector<std::string_view> kProgramsOfAReplica{"forward", "backward"};

std::int64_t divided(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

CompiledProgram compiled(const std::string& name, std::vector<int> ranks, const SubmodelSpec& spec) {
  try {
    Plan plan = compile_submodel(spec).plan;
    check_fits(plan, spec.job.supernode);
    const Bytes alone = plan.peak();
    return {name, "", std::move(ranks), spec.job, std::move(plan), alone};
  } catch (const Error& e) {
    throw Error(e).at(fmt::format("program {}{}{}", name, e.place().empty() ? "" : ", ", e.place()));
  }
}

// The job of one stage, on the devices with its coordinate along the pipeline's axis.
Job stage_job(const Job& text) {
  Job job = text;
  const std::string& axis = text.parallel.pipeline.axis;
  job.parallel.pipeline = {};
  if (axis.empty()) return job;
  const auto at = std::ranges::find(job.parallel.mesh, axis, &MeshAxis::name);
  const std::int32_t stages = at->size;
  job.parallel.mesh.erase(at);
  job.supernode.devices /= stages;
  for (Bytes* shared : {&job.supernode.pool, &job.supernode.flash}) *shared = *shared / stages;
  return job;
}

class OmniCompiler {
 public:
  OmniCompiler(const Job& job, const std::vector<std::int64_t>& most_items)
      : job_(job),
        most_items_(most_items),
        trains_(*find_program(job, kTrains)),
        text_(job_of(job, trains_)) {}

  OmniPlan run() {
    for (const ProgramSpec& program : job_.programs)
      if (program.does == kEncodes) encoder(program);
    stages();
    std::vector<PlanOnRanks> placed;
    each_program([&](CompiledProgram& p) { placed.push_back({&p.plan, p.ranks}); });
    const std::vector<TierBytes> ends = colocate(placed, job_.supernode.devices);
    exchange(ends);
    check_together(plans_of(out_, job_.supernode.devices), job_.supernode);
    return std::move(out_);
  }

 private:
  void each_program(const auto& visit) {
    for (OmniPlan::Encoder& e : out_.encoders) visit(e.program);
    for (CompiledProgram& s : out_.stages) visit(s);
  }

  void encoder(const ProgramSpec& program) {
    OmniPlan::Encoder e;
    SubmodelSpec spec;
    spec.job = job_of(job_, program);
    const std::int64_t parts = parts_of_batch(spec.job), each = program.encoder.items;
    spec.job.training.batch = static_cast<std::int32_t>(each * parts);
    const std::int64_t most = most_items_[out_.encoders.size()];
    spec.slots = std::max<std::int64_t>(1, divided(most, each)) * text_.training.micro_batches;
    e.program = compiled(program.name, ranks_of(program), spec);
    find_replicas(e, each * parts);
    e.passes = std::max<std::int64_t>(1, divided(most, e.items));
    out_.encoders.push_back(std::move(e));
  }

  // Replicas differ along the axes on which passes do not communicate, if these axes split the items. Else
  // the encoder is one replica.
  void find_replicas(OmniPlan::Encoder& e, std::int64_t batch) const {
    const Plan& plan = e.program.plan;
    const AxisList axes = axes_of_replicas(plan, kProgramsOfAReplica);
    const StateTensor& port = port_of(plan, "port.out");
    const std::int64_t count = plan.mesh.size(axes);
    const bool split =
        plan.mesh.size(port.layout.dims[1]) % count == 0 && std::ranges::all_of(axes, [&](AxisId a) {
          return std::ranges::find(port.layout.dims[1], a) != port.layout.dims[1].end();
        });
    const std::int64_t replicas = split ? count : 1;
    e.items = batch / replicas;
    e.replicas.resize(static_cast<std::size_t>(replicas));
    e.first_item.assign(e.replicas.size(), batch);
    const std::int64_t local = batch / plan.mesh.size(port.layout.dims[1]);
    for (std::int64_t d = 0; d < plan.mesh.devices(); ++d) {
      const auto r = static_cast<std::size_t>(split ? plan.mesh.index(d, axes) : 0);
      e.replicas[r].push_back(e.program.ranks[static_cast<std::size_t>(d)]);
      e.first_item[r] = std::min(e.first_item[r], plan.mesh.index(d, port.layout.dims[1]) * local);
    }
  }

  void stages() {
    const PipelineSpec& pipeline = trains_.parallel.pipeline;
    const Mesh whole{trains_.parallel.mesh};
    const std::vector<int> ranks = ranks_of(trains_);
    const std::size_t count = pipeline.axis.empty() ? 1 : pipeline.stages.size();
    std::int32_t layer = 0;
    for (std::size_t s = 0; s < count; ++s) {
      SubmodelSpec spec;
      spec.job = stage_job(text_);
      spec.slots = text_.training.micro_batches;
      spec.first_layer = layer;
      layer = spec.end_layer = pipeline.axis.empty() ? text_.model.layers : layer + pipeline.stages[s].layers;
      std::vector<int> own;
      for (std::size_t d = 0; d < ranks.size(); ++d)
        if (pipeline.axis.empty() || whole.coordinate(static_cast<std::int64_t>(d),
                                                      whole.find(pipeline.axis)) == pipeline.stages[s].device)
          own.push_back(ranks[d]);
      if (s == 0)
        for (const OmniPlan::Encoder& e : out_.encoders)
          spec.features.push_back({e.program.name, e.passes * e.items, e.program.job.model.sequence});
      out_.stages.push_back(
          compiled(count > 1 ? fmt::format("{}.{}", trains_.name, s) : trains_.name, std::move(own), spec));
    }
  }

  void exchange(const std::vector<TierBytes>& ends) {
    std::vector<PortMove> moves;
    const std::int64_t micro_batches = text_.training.micro_batches;
    const CompiledProgram& first = out_.stages.front();
    for (std::size_t e = 0; e < out_.encoders.size(); ++e) {
      const OmniPlan::Encoder& encoder = out_.encoders[e];
      const std::int64_t slots = micro_batches * encoder.passes;
      const std::string port = "port." + encoder.program.name;
      for (std::size_t r = 0; r < encoder.replicas.size(); ++r) {
        const PortSide own{&encoder.program.plan, encoder.program.ranks, "port.out", 0,
                           encoder.replicas[r],   encoder.first_item[r]};
        const PortSide text{&first.plan, first.ranks, port, slots, {}, 0};
        moves.push_back({features_program(e, r), own, text});
        moves.push_back({feature_gradients_program(e, r), text.gradient(), own.gradient()});
      }
    }
    for (std::size_t s = 0; s + 1 < out_.stages.size(); ++s) {
      const PortSide from{&out_.stages[s].plan, out_.stages[s].ranks, "port.out", 0, {}, 0};
      const PortSide to{&out_.stages[s + 1].plan, out_.stages[s + 1].ranks, "port.in", 0, {}, 0};
      moves.push_back({stream_program(s), from, to});
      moves.push_back({stream_gradient_program(s), to.gradient(), from.gradient()});
    }
    out_.exchange = compile_port_exchange(moves, ends);
  }

  const Job& job_;
  const std::vector<std::int64_t>& most_items_;
  const ProgramSpec& trains_;
  Job text_;
  OmniPlan out_;
};

}  // namespace

std::string features_program(std::size_t encoder, std::size_t replica) {
  return fmt::format("features.{}.{}", encoder, replica);
}
std::string feature_gradients_program(std::size_t encoder, std::size_t replica) {
  return fmt::format("feature_gradients.{}.{}", encoder, replica);
}
std::string stream_program(std::size_t stage) { return fmt::format("stream.{}", stage); }
std::string stream_gradient_program(std::size_t stage) { return fmt::format("stream_gradient.{}", stage); }

std::vector<NamedPlan> plans_of(const OmniPlan& plan, int ranks) {
  std::vector<NamedPlan> plans;
  const auto add = [&](const CompiledProgram& p) { plans.push_back({p.name, &p.plan, p.ranks}); };
  for (const OmniPlan::Encoder& e : plan.encoders) add(e.program);
  for (const CompiledProgram& s : plan.stages) add(s);
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  plans.push_back({"", &plan.exchange, all});
  return plans;
}

OmniPlan compile_omni(const Job& job, const std::vector<std::int64_t>& most_items) {
  return OmniCompiler(job, most_items).run();
}

}  // namespace hyperrun
