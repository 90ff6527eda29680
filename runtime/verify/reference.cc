#include "runtime/verify/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/verify/whole.h"

namespace hyperrun {
namespace {

// The allowed difference: a multiple of the noise, and at least `least`.
struct Allowance {
  double times, least;
};
// In float32 the order alone changes a sum of some ten thousand squares by 1e-6.
constexpr Allowance kFloat{300, 1e-5};
// In bfloat16 the noise comes from a change of 2^-8 to 2^-7 of each weight. It is several times the 2^-8 of
// one rounding, because sums are rounded only once, at the end.
constexpr Allowance kRounded{8, 0x1p-7};

// The least allowed difference of a tensor of n elements. It is larger for few elements, whose noise may
// nearly vanish by chance.
double least_rounded(std::int64_t n) { return kRounded.least * (1 + 16 / std::sqrt(static_cast<double>(n))); }

std::vector<double> elements(DType dtype, std::span<const std::byte> bytes) {
  const Placed flat{dtype, {std::ssize(bytes) / size_of(dtype)}, Layout::replicated(1), {}};
  return whole(flat, Mesh{}, {std::vector<std::byte>(bytes.begin(), bytes.end())});
}

// The relative difference if two of `n` equal parts are replaced by others.
double of_two(std::int64_t n) { return 2 * std::sqrt(2 / static_cast<double>(n)); }

// The tensors that depend on the choice of experts, with the difference that two other choices make. A token
// whose scores are nearly equal may choose another expert after rounding, in one run only. A bias that
// follows the number of choices may then move up instead of down. Two tokens and two biases are allowed for.
// Weights are not among these tensors: a step changes them little, whoever chose what, so their difference is
// measured.
std::map<TensorId, double> following_choices(const Graph& graph) {
  std::map<TensorId, double> found;
  double change = 0;
  for (const Node& node : graph.nodes) {
    if (std::holds_alternative<op::Route>(node.op)) {
      const TensorId gates = node.outputs[0];
      change = of_two(graph.elements(gates) / graph.shape(gates).back());
    }
    for (const TensorId t : node.outputs) {
      const bool bias = std::holds_alternative<op::Balance>(node.op);
      if (change == 0 || (graph[t].cls == TensorClass::kWeight && !bias)) continue;
      found[t] = found[storage_of(graph, t)] = bias ? of_two(graph.elements(t)) : change;
    }
  }
  return found;
}

// Changes the last bit of each number. `bit`: 0 for float32, 16 for bfloat16.
void change_last_bits(std::span<std::byte> floats, int bit) {
  for (std::size_t at = 0; at < floats.size(); at += sizeof(std::uint32_t)) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &floats[at], sizeof bits);
    bits ^= 1U << bit;
    std::memcpy(&floats[at], &bits, sizeof bits);
  }
}

}  // namespace

Reference::Reference(const Graph& graph, bool rounds)
    : graph_(graph), rounds_(rounds), values_(graph), noise_(graph) {
  if (rounds_) routed_ = following_choices(graph);
}

void Reference::keep(const Write& write, std::size_t output, std::span<const std::byte> bytes) {
  const TensorId t = written(write, output);
  const std::vector<double> values = elements(graph_[t].dtype, bytes);
  values_.made(t, write.micro_batch).assign(values.begin(), values.end());
}

void Reference::keep_perturbed(const Write& write, std::size_t output, std::span<std::byte> bytes) {
  const TensorId t = written(write, output);
  const bool initial = graph_.nodes[static_cast<std::size_t>(write.node)].phase == Phase::kInit;
  if (initial && graph_[t].cls == TensorClass::kWeight) change_last_bits(bytes, rounds_ ? 16 : 0);
  noise_.made(t, write.micro_batch) =
      relative_difference(value(t, write.micro_batch), elements(graph_[t].dtype, bytes));
}

void Reference::end_step() {
  values_.end_step();
  noise_.end_step();
}

const std::vector<float>& Reference::value(TensorId t, int micro_batch) const {
  const std::vector<float>* value = values_.find(t, micro_batch);
  HR_CHECK(value != nullptr, graph_[t].name + " was not made by one device");
  return *value;
}

double allowed_difference(double noise, double values, bool rounds) {
  const Allowance& allowed = rounds ? kRounded : kFloat;
  const double least = rounds ? allowed.least / std::sqrt(values) : allowed.least;
  return std::max(least, allowed.times * noise);
}

double Reference::tolerance(TensorId t, int micro_batch) const {
  const double* noise = noise_.find(t, micro_batch);
  HR_CHECK(noise != nullptr, graph_[t].name);
  const Allowance& allowed = rounds_ ? kRounded : kFloat;
  double least = rounds_ ? least_rounded(graph_.elements(t)) : allowed.least;
  if (graph_[t].dtype == DType::kI32) least = 0;
  if (const auto routed = routed_.find(t); routed != routed_.end()) least = std::max(least, routed->second);
  return std::max(least, allowed.times * *noise);
}

}  // namespace hyperrun
