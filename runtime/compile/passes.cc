#include "runtime/compile/passes.h"

#include <fmt/core.h>

#include <filesystem>
#include <fstream>

#include "runtime/base/error.h"
#include "runtime/base/parallel.h"
#include "runtime/base/time_limit.h"
#include "runtime/compile/choose_memory_plan.h"
#include "runtime/compile/order.h"
#include "runtime/compile/software_memory.h"

namespace hyperrun {

void write_dump(const std::string& phase, const std::string& printed) {
  const std::filesystem::path file = std::filesystem::path(flags().dump_dir) / (phase + ".txt");
  std::error_code shown_by_the_stream;
  std::filesystem::create_directories(file.parent_path(), shown_by_the_stream);
  std::ofstream stream(file);
  stream << printed << std::flush;
  if (!stream)
    throw Error(Code::kUnwritable, "cannot write " + file.string())
        .at("HYPERRUN_DUMP")
        .fix("name a folder that has room and that you may write to, or unset the variable");
}

void require_countable(const Graph& graph) {
  constexpr double kMost = 0x1p57;
  double bytes = 0;
  for (const Tensor& t : graph.tensors) {
    double elements = 1;
    for (const DimId d : t.dims) elements *= static_cast<double>(graph[d].size);
    bytes += elements * static_cast<double>(size_of(t.dtype));
  }
  if (bytes > kMost)
    throw Error(Code::kDoesNotFit, "the tensors of one forward pass take more than 128 PiB")
        .at("supernode.hbm")
        .legal("a model and a batch that a supernode has room for")
        .fix("make the model, the batch or the sequence smaller");
}

Plan empty_plan(const Job& job) {
  Plan plan;
  plan.mesh.axes = job.parallel.mesh;
  HR_CHECK(plan.mesh.devices() == job.supernode.devices);
  if (const std::string& axis = job.parallel.pipeline.axis; !axis.empty())
    plan.role_axes = {plan.mesh.find(axis)};
  plan.roles.resize(static_cast<std::size_t>(plan.mesh.size(plan.role_axes)));
  return plan;
}

Lowered lower_in_order(const Graph& graph, const Mesh& mesh, const LowerOptions& options) {
  check_time();
  Lowered lowered = lower(graph, mesh, options);
  prefetch_weights(lowered.program, lowered.update);
  start_collectives_early(lowered.program, lowered.update);
  add_exchanged_gradients_late(lowered.program, lowered.update);
  return lowered;
}

namespace {

std::vector<StateTensor> state_tensors(const Graph& graph, const Mesh& mesh, const StatePlaces& places) {
  std::vector<StateTensor> list;
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const Tensor& tensor = graph.tensors[t];
    const bool listed = !tensor.saved.name.empty() || tensor.cls == TensorClass::kPort;
    if (!listed || tensor.updates.valid() || !places.places.contains(tensor.name)) continue;
    const StatePlaces::Place& place = places.places.at(tensor.name);
    const TensorId id(static_cast<std::int64_t>(t));
    StateTensor s{tensor.name,  tensor.cls, tensor.dtype, graph.shape(id), graph.layouts[t],
                  place.offset, {},         tensor.saved, place.tier};
    if (s.saved.shape.empty()) s.saved.shape = s.shape;
    std::int64_t n = size_of(tensor.dtype);
    for (std::int64_t size : local_shape(s.shape, s.layout, mesh)) n *= size;
    s.bytes = Bytes(n);
    list.push_back(std::move(s));
  }
  return list;
}

// Incomplete rounds of an interleaved pipeline can bring the stages' messages out of step.
Error messages_wait(const Job& job) {
  const std::int64_t devices =
      Mesh{job.parallel.mesh}.size(Mesh{job.parallel.mesh}.find(job.parallel.pipeline.axis));
  return Error(Code::kBadValue,
               fmt::format("with {} micro-batches the stages of {} devices wait for each other's messages",
                           job.training.micro_batches, devices))
      .at("training.micro_batches")
      .legal(fmt::format("a multiple of {}", devices))
      .fix("choose a legal number, or another schedule");
}

}  // namespace

void assign_memory_and_events(Compiled& out, const Job& job, const Moves* like, const Refusals& refusals) {
  std::vector<Role>& roles = out.plan.roles;
  for (Role& role : roles) add_software_memory(role.programs, job);
  MemoryPlan memory = choose_memory_plan(out.plan, job, like, refusals);
  parallel_for(roles.size(), [&](std::size_t r) {
    for (const Program& program : roles[r].programs) {
      dump("4-program-" + program.name + (roles.size() > 1 ? "-role-" + std::to_string(r) : ""),
           [&] { return print(program); });
      verify(program);
    }
    roles[r].state = state_tensors(out.training, out.plan.mesh, memory.places[r]);
  });
  out.moves = std::move(memory.moves);
  verify(out.plan);
  if (!messages_meet(out.plan)) throw messages_wait(job);
}

}  // namespace hyperrun
