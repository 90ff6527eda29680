#include "runtime/verify/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/verify/whole.h"

namespace hyperrun {
namespace {

// How often the noise, and how much in any case.
struct Allowance {
  double times, least;
};
// The order of a sum of some ten thousand squares alone changes it by 1e-6.
constexpr Allowance kFloat{300, 1e-5};
// The noise, of a change of 2^-8 to 2^-7 of each weight, is itself several times the 2^-8 that a rounding may
// change: nothing of a sum is lost before it is rounded.
constexpr Allowance kRounded{8, 0x1p-7};

// In any case, of a tensor of n elements: by chance the noise of a few of them may nearly vanish.
double least_rounded(std::int64_t n) { return kRounded.least * (1 + 16 / std::sqrt(static_cast<double>(n))); }

std::vector<double> elements(DType dtype, std::span<const std::byte> bytes) {
  const Placed flat{dtype, {std::ssize(bytes) / size_of(dtype)}, Layout::replicated(1), {}};
  return whole(flat, Mesh{}, {std::vector<std::byte>(bytes.begin(), bytes.end())});
}

// The difference that two of `n` equal parts make when another takes their place.
double of_two(std::int64_t n) { return 2 * std::sqrt(2 / static_cast<double>(n)); }

// Where tokens choose experts, one whose scores are nearly equal may choose another after a rounding, in one
// run and not in the other; and so may a bias that follows how many chose its expert move up or down. Two
// tokens, two biases. What a weight becomes is measured: a step moves it little, whoever chose it.
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

// `bit`: 0 for float32, 16 for bfloat16.
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
