#include "runtime/verify/reference.h"

#include <algorithm>
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
constexpr Allowance kFloat{300,
                           1e-5};  // the order of a sum of some ten thousand squares alone changes it by 1e-6
// The noise, of a change of 2^-8 to 2^-7 of each weight, is itself several times the 2^-8 that a rounding may
// change: nothing of a sum is lost before it is rounded.
constexpr Allowance kRounded{4, 0x1p-7};

std::vector<double> elements(DType dtype, std::span<const std::byte> bytes) {
  const Placed flat{dtype, {std::ssize(bytes) / size_of(dtype)}, Layout::replicated(1), {}};
  return whole(flat, Mesh{}, {std::vector<std::byte>(bytes.begin(), bytes.end())});
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

Reference::Reference(const Graph& graph) : graph_(graph), values_(graph), noise_(graph) {
  rounds_ = std::any_of(graph.tensors.begin(), graph.tensors.end(),
                        [](const Tensor& t) { return t.dtype == DType::kBF16; });
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

double Reference::tolerance(TensorId t, int micro_batch) const {
  const double* noise = noise_.find(t, micro_batch);
  HR_CHECK(noise != nullptr, graph_[t].name);
  const Allowance& allowed = rounds_ ? kRounded : kFloat;
  const double least = graph_[t].dtype == DType::kI32 ? 0 : allowed.least;
  return std::max(least, allowed.times * *noise);
}

}  // namespace hyperrun
