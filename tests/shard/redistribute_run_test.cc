// Redistributions executed: lowered, placed and run on devices with the real collectives. Every element of
// the tensor is its own global index, so that each device's result shows where it came from.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include "collectives/group.h"
#include "runtime/compile/events.h"
#include "runtime/compile/lower.h"
#include "runtime/compile/place.h"
#include "runtime/device/executor.h"
#include "runtime/shard/redistribute.h"
#include "tests/shard/layouts.h"

namespace hyperrun::testing {
namespace {

// The part that a device holds of a tensor in `layout` whose element i is i. In a partial sum the others of a
// group hold 1, 2, ... and the first device the rest. In a partial maximum the first holds the element and
// the others less.
std::vector<float> part(const std::vector<std::int64_t>& shape, const Layout& layout, const Mesh& mesh,
                        std::int64_t device) {
  const std::vector<std::int64_t> local = local_shape(shape, layout, mesh);
  const std::int64_t p = mesh.size(layout.partial), mine = mesh.index(device, mesh.list(layout.partial));
  std::int64_t shift = -mine;
  if (layout.reduction == Reduction::kSum) shift = mine == 0 ? -(p * (p - 1) / 2) : 0;
  std::vector<float> values;
  const std::int64_t n = std::accumulate(local.begin(), local.end(), std::int64_t{1}, std::multiplies<>());
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t global = 0, rest = i, stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      global += stride * (rest % local[d] + local[d] * mesh.index(device, layout.dims[d]));
      rest /= local[d];
      stride *= shape[d];
    }
    const bool other_addend = layout.reduction == Reduction::kSum && mine != 0;
    values.push_back(static_cast<float>(other_addend ? mine : global + shift));
  }
  return values;
}

struct Case {
  Layout from, to;
};

struct Setting {
  std::string name;
  std::vector<MeshAxis> axes;
  std::vector<std::int64_t> shape;
  int hosts = 1;
};

std::ostream& operator<<(std::ostream& out, const Setting& s) { return out << s.name; }

class RedistributeRun : public ::testing::TestWithParam<Setting> {
 protected:
  const Mesh mesh_{GetParam().axes};
  const std::vector<std::int64_t>& shape_ = GetParam().shape;

  // Pairs that need at least one step, in a random order.
  std::vector<Case> cases(std::size_t count) const {
    std::vector<Case> list;
    for (const Layout& from : all_layouts(shape_, mesh_))
      for (Layout to : all_layouts(shape_, mesh_)) {
        if (from == to || (to.partial.bits & ~from.partial.bits) != 0) continue;
        list.push_back({from, to});
        if (from.partial.empty()) continue;
        Case of_maximum{from, to};
        of_maximum.from.reduction = Reduction::kMax;
        if (!to.partial.empty()) of_maximum.to.reduction = Reduction::kMax;
        list.push_back(of_maximum);
      }
    std::mt19937 random(3);
    std::shuffle(list.begin(), list.end(), random);
    list.resize(std::min(count, list.size()));
    return list;
  }

  // One Program with all the cases; input i is the state "x<i>", its result an output.
  Plan plan(const std::vector<Case>& cases) {
    Graph graph;
    std::vector<DimId> dims;
    for (std::size_t d = 0; d < shape_.size(); ++d)
      dims.push_back(graph.add_dim("d" + std::to_string(d), shape_[d]));
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const std::string label = "x" + std::to_string(i);
      TensorId at = graph.add_tensor(Tensor{label, DType::kF32, dims, TensorClass::kConstant});
      graph.layouts.push_back(cases[i].from);
      for (const RedistributionStep& step : redistribute(shape_, 4, cases[i].from, cases[i].to, mesh_)) {
        at = graph.add_node(
            {label + "." + std::to_string(graph.nodes.size()), step.op, {at}, {}, {}, Phase::kForward},
            {Tensor{label + "'", DType::kF32, dims}})[0];
        graph.layouts.push_back(step.after);
        ++kinds_[std::string(hyperrun::name(step.op))];
        if (const auto* moved = std::get_if<op::AllToAll>(&step.op)) {
          ++kinds_[moved->from_dim < moved->to_dim ? "AllToAll to a minor dimension"
                                                   : "AllToAll to a major dimension"];
          if (moved->axes.size() > 1) ++kinds_["AllToAll of several axes"];
        }
      }
      graph.outputs.emplace_back(label, at);
    }
    verify(graph);
    Program program =
        lower(graph, mesh_, {"redistribute", {Slot{}}, [](const Node&) { return true; }, {}}).program;
    StatePlaces places;
    place_state({&program, 1}, places);
    place_buffers(program, places);
    add_events(program);
    verify(program);
    return Plan{mesh_, {}, {Role{{std::move(program)}, {}}}};
  }

  // Runs the plan's only Program on all devices. Returns the outputs by device.
  std::vector<std::vector<double>> run(const Plan& plan, const std::vector<Case>& cases) {
    const auto devices = static_cast<int>(mesh_.devices());
    std::vector<Arena> arenas = make_in_process_arenas(devices, plan.peak());
    auto worlds =
        make_in_process_worlds(arenas, Topology::uniform(GetParam().hosts, devices / GetParam().hosts));
    const Feed feed;
    std::vector<std::vector<double>> outputs(arenas.size());
    std::vector<std::thread> threads;
    for (int d = 0; d < devices; ++d)
      threads.emplace_back([&, d] {
        const auto n = static_cast<std::size_t>(d);
        for (const Buffer& b : plan.roles[0].programs[0].buffers)
          if (b.state) {
            const std::vector<float> values =
                part(shape_, cases[std::stoul(b.name.substr(1))].from, mesh_, d);
            std::memcpy(arenas[n].view(b.offset, b.bytes).data(), values.data(),
                        values.size() * sizeof(float));
          }
        Executor executor(plan, arenas[n], *worlds[n], feed, {});
        for (const OutputPart& part : executor.run(0, {}).arrays) {
          std::vector<float> values(part.bytes.size() / sizeof(float));
          std::memcpy(values.data(), part.bytes.data(), part.bytes.size());
          outputs[n].insert(outputs[n].end(), values.begin(), values.end());
        }
      });
    for (std::thread& t : threads) t.join();
    return outputs;
  }

  std::map<std::string, int> kinds_;
};

TEST_P(RedistributeRun, EveryDeviceGetsItsSlice) {
  const std::vector<Case> all = cases(150);
  const Plan p = plan(all);
  const auto outputs = run(p, all);
  std::vector<std::size_t> at(outputs.size(), 0);
  for (const Case& c : all) {
    const AxisList partial = mesh_.list(c.to.partial);
    const Layout complete{c.to.dims, {}, Reduction::kSum};
    const std::size_t n = part(shape_, complete, mesh_, 0).size();
    for (int d = 0; d < mesh_.devices(); ++d) {
      if (mesh_.index(d, partial) != 0) continue;  // the first of each group holds the rest
      const std::vector<float> wanted = part(shape_, complete, mesh_, d);
      for (std::size_t i = 0; i < n; ++i) {
        double value = c.to.reduction == Reduction::kSum ? 0 : -1e9;
        for (int member : mesh_.group(d, partial)) {
          const double x =
              outputs[static_cast<std::size_t>(member)][at[static_cast<std::size_t>(member)] + i];
          value = c.to.reduction == Reduction::kSum ? value + x : std::max(value, x);
        }
        ASSERT_EQ(value, static_cast<double>(wanted[i]))
            << to_string(c.from, mesh_) << " to " << to_string(c.to, mesh_) << ", device " << d << " element "
            << i;
      }
    }
    for (std::size_t& a : at) a += n;
  }
  for (const char* kind : {"AllReduce", "ReduceScatter", "AllGather", "AllToAll to a minor dimension",
                           "AllToAll to a major dimension", "AllToAll of several axes", "Slice"})
    EXPECT_GT(kinds_[kind], 0) << kind << " was not tried";
}

INSTANTIATE_TEST_SUITE_P(Meshes, RedistributeRun,
                         ::testing::Values(Setting{"a2b2", {{"a", 2}, {"b", 2}}, {4, 4, 8}},
                                           Setting{"a2b4", {{"a", 2}, {"b", 4}}, {8, 8, 8}},
                                           Setting{"a2b2c2", {{"a", 2}, {"b", 2}, {"c", 2}}, {8, 8, 8}},
                                           Setting{"a2b2OnTwoHosts", {{"a", 2}, {"b", 2}}, {4, 4, 8}, 2}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hyperrun::testing
