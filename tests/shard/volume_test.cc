// The communication of each form of parallelism: kinds and numbers of collectives, and their bytes compared
// with the known formulas. Symbols are those of the literature: t, d devices along tp, dp; b, s, h of one
// data-parallel replica.
#include <gtest/gtest.h>

#include <map>

#include "runtime/compile/compile.h"
#include "tests/shard/tiny_job.h"

namespace hyperrun::testing {
namespace {

struct Volume {
  int count = 0;
  std::int64_t bytes = 0;  // sent by one device
  bool operator==(const Volume&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Volume& v) {
  return out << v.count << " of " << v.bytes << " bytes";
}

using Volumes = std::map<std::string, Volume>;  // by collective

class Communication {
 public:
  explicit Communication(const Job& job) : compiled_(compile(job)) {}

  // The collectives of a phase whose input is (or is not) a gradient of a weight, or its update.
  Volumes activations(Phase phase) const {
    return sum(phase, [&](const Node& n) { return graph()[n.inputs[0]].dims.size() == 3; });
  }
  Volumes of_weight(const std::string& weight) const {
    Volumes all = of(Phase::kUpdate, weight);
    for (const auto& [kind, v] : of(Phase::kBackward, weight))
      all[kind].count += v.count, all[kind].bytes += v.bytes;
    return all;
  }
  std::vector<TensorId> weights() const {
    std::vector<TensorId> list;
    for (std::size_t t = 0; t < graph().tensors.size(); ++t)
      if (graph().tensors[t].cls == TensorClass::kWeight && !graph().tensors[t].updates.valid())
        list.emplace_back(t);
    return list;
  }
  std::int64_t total() const {
    std::int64_t bytes = 0;
    for (const Node& n : graph().nodes)
      if (is_collective(n.op)) bytes += wire(n);
    return bytes;
  }
  std::int64_t local_bytes(TensorId t) const {
    std::int64_t n = 4;
    for (std::int64_t size : local_shape(graph().shape(t), graph().layouts[t.index()], mesh())) n *= size;
    return n;
  }
  const Graph& graph() const { return compiled_.training; }
  const Mesh& mesh() const { return compiled_.plan.mesh; }
  const Plan& plan() const { return compiled_.plan; }

 private:
  Volumes of(Phase phase, const std::string& weight) const {
    return sum(phase, [&](const Node& n) {
      const std::string& name = graph()[n.inputs[0]].name;
      return name.starts_with(weight + ".grad") || name.starts_with(weight + ".next");
    });
  }
  template <class F>
  Volumes sum(Phase phase, F wanted) const {
    Volumes all;
    for (const Node& n : graph().nodes)
      if (n.phase == phase && is_collective(n.op) && wanted(n)) {
        Volume& v = all[std::string(hyperrun::name(n.op))];
        ++v.count;
        v.bytes += wire(n);
      }
    return all;
  }

  std::int64_t wire(const Node& n) const {
    const std::int64_t in = local_bytes(n.inputs[0]), out = local_bytes(n.outputs[0]);
    if (const auto* o = std::get_if<op::AllReduce>(&n.op)) {
      const std::int64_t p = mesh().size(o->axes);
      return 2 * in * (p - 1) / p;
    }
    if (std::holds_alternative<op::AllGather>(n.op)) return out - in;
    return in - in / mesh().size(std::visit(
                         [](const auto& o) {
                           if constexpr (requires { o.axes; }) return o.axes;
                           return AxisList{};
                         },
                         n.op));
  }

  Compiled compiled_;
};

// b * s * h of the tiny job in bytes, with its 4 sequences split over dp.
std::int64_t bsh(int dp) { return 4 / dp * 8 * 16 * 4; }

// The volumes that one more layer adds.
Volumes per_layer(const Parallel& p, Phase phase) {
  const Volumes one = Communication(tiny_job(p, 1)).activations(phase);
  Volumes more = Communication(tiny_job(p, 2)).activations(phase);
  for (const auto& [kind, v] : one) more[kind].count -= v.count, more[kind].bytes -= v.bytes;
  return more;
}

TEST(Volume, OneDeviceCommunicatesNothing) {
  EXPECT_EQ(Communication(tiny_job({"one", 1, 1, {"dp", "tp", "sp", "zero1"}})).total(), 0);
}

TEST(Volume, DataParallelReducesEachGradientOnce) {
  for (const int d : {2, 4}) {
    const Communication c(tiny_job({"dp", d, 1, {"dp"}}));
    std::int64_t all = 2 * 4 * (d - 1) / d;  // the loss
    for (TensorId w : c.weights()) {
      const std::int64_t bytes = 2 * c.local_bytes(w) * (d - 1) / d;
      EXPECT_EQ(c.of_weight(c.graph()[w].name), (Volumes{{"AllReduce", {1, bytes}}})) << c.graph()[w].name;
      all += bytes;
    }
    EXPECT_EQ(c.total(), all) << "something else is communicated";
  }
}

TEST(Volume, GradientsAreReducedOnceAlsoWithMicroBatches) {
  Job job = tiny_job({"dp", 2, 1, {"dp"}});
  const Communication once(job);
  job.training.micro_batches = 2;
  const Communication twice(job);
  const auto bytes = [](const Communication& c) {
    std::int64_t sum = 0;
    for (const Instr& i : c.plan().roles[0].program("train").instrs) sum += work(i, c.mesh()).wire.value;
    return sum;
  };
  EXPECT_EQ(bytes(once), once.total());
  EXPECT_EQ(bytes(twice), bytes(once));
}

TEST(Volume, TensorParallelReducesTwiceALayerEachWay) {
  for (const int t : {2, 4}) {
    const Parallel p{"tp", 1, t, {"tp"}};
    const Volumes two{{"AllReduce", {2, 4 * bsh(1) * (t - 1) / t}}};
    EXPECT_EQ(per_layer(p, Phase::kForward), two);
    EXPECT_EQ(per_layer(p, Phase::kBackward), two);
    const Communication c(tiny_job(p));
    for (TensorId w : c.weights()) EXPECT_TRUE(c.of_weight(c.graph()[w].name).empty()) << c.graph()[w].name;
  }
}

// Reduce-scatter and all-gather replace the all-reduce: 4 (t-1)/t b s h forward, as without sp. Backward it
// is 6 (t-1)/t, because the inputs of products are gathered again for the weights' gradients.
TEST(Volume, SequenceParallelScattersAndGathers) {
  for (const int t : {2, 4}) {
    const Parallel p{"sp", 1, t, {"tp", "sp"}};
    const std::int64_t one = bsh(1) * (t - 1) / t;
    EXPECT_EQ(per_layer(p, Phase::kForward),
              (Volumes{{"ReduceScatter", {2, 2 * one}}, {"AllGather", {2, 2 * one}}}));
    EXPECT_EQ(per_layer(p, Phase::kBackward),
              (Volumes{{"ReduceScatter", {2, 2 * one}}, {"AllGather", {4, 4 * one}}}));
  }
}

TEST(Volume, SequenceParallelNormsAreReducedOverBothAxesAtOnce) {
  const Communication c(tiny_job({"all", 2, 2, {"dp", "tp", "sp"}}));
  for (TensorId w : c.weights()) {
    const Volumes v = c.of_weight(c.graph()[w].name);
    const std::int64_t p = c.graph()[w].dims.size() == 1 ? 4 : 2;
    EXPECT_EQ(v, (Volumes{{"AllReduce", {1, 2 * c.local_bytes(w) * (p - 1) / p}}})) << c.graph()[w].name;
  }
}

TEST(Volume, AxesDoNotMultiplyEachOthersVolume) {
  EXPECT_EQ(per_layer({"both", 2, 2, {"dp", "tp"}}, Phase::kForward),
            (Volumes{{"AllReduce", {2, 4 * bsh(2) / 2}}}));
}

TEST(Volume, Zero1ScattersGradientsAndGathersWeights) {
  for (const int d : {2, 4}) {
    const Communication c(tiny_job({"zero1", d, 1, {"dp", "zero1"}}));
    for (TensorId w : c.weights()) {
      const std::int64_t half = c.local_bytes(w) * (d - 1) / d;
      EXPECT_EQ(c.of_weight(c.graph()[w].name),
                (Volumes{{"ReduceScatter", {1, half}}, {"AllGather", {1, half}}}))
          << c.graph()[w].name;
    }
    for (std::size_t t = 0; t < c.graph().tensors.size(); ++t)
      if (c.graph().tensors[t].cls == TensorClass::kOptimizer) {
        EXPECT_EQ(c.local_bytes(TensorId(static_cast<std::int64_t>(t))) * d,
                  4 * c.graph().elements(TensorId(static_cast<std::int64_t>(t))))
            << c.graph().tensors[t].name;
      }
  }
}

// The instructions move the bytes of the graph's collectives.
TEST(Volume, ProgramMovesTheBytesOfTheGraph) {
  for (const Parallel& p : {Parallel{"tp4sp", 1, 4, {"tp", "sp"}},
                            Parallel{"dp2tp2spzero1", 2, 2, {"dp", "tp", "sp", "zero1"}}}) {
    const Communication c(tiny_job(p, 2));
    std::int64_t bytes = 0;
    for (const Instr& i : c.plan().roles[0].program("train").instrs) bytes += work(i, c.mesh()).wire.value;
    EXPECT_EQ(bytes, c.total()) << p;
  }
}

}  // namespace
}  // namespace hyperrun::testing
