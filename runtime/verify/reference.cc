#include "runtime/verify/reference.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/verify/whole.h"

namespace hyperrun {
namespace {

constexpr double kTimesNoise = 300;
constexpr double kLeast = 1e-5;  // the order of a sum of some ten thousand squares alone changes it by 1e-6

std::vector<double> elements(DType dtype, std::span<const std::byte> bytes) {
  const Placed flat{dtype, {std::ssize(bytes) / size_of(dtype)}, Layout::replicated(1), {}};
  return whole(flat, Mesh{}, {std::vector<std::byte>(bytes.begin(), bytes.end())});
}

void change_last_bits(std::span<std::byte> floats) {
  for (std::size_t at = 0; at < floats.size(); at += sizeof(std::uint32_t)) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &floats[at], sizeof bits);
    bits ^= 1U;
    std::memcpy(&floats[at], &bits, sizeof bits);
  }
}

}  // namespace

void Reference::keep(const Write& write, std::size_t output, std::span<const std::byte> bytes) {
  const TensorId t = written(write, output);
  const std::vector<double> values = elements(graph_[t].dtype, bytes);
  values_.made(t, write.micro_batch).assign(values.begin(), values.end());
}

void Reference::keep_perturbed(const Write& write, std::size_t output, std::span<std::byte> bytes) {
  const TensorId t = written(write, output);
  const bool initial = graph_.nodes[static_cast<std::size_t>(write.node)].phase == Phase::kInit;
  if (initial && graph_[t].cls == TensorClass::kWeight) change_last_bits(bytes);
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
  const double least = graph_[t].dtype == DType::kI32 ? 0 : kLeast;
  return std::max(least, kTimesNoise * *noise);
}

}  // namespace hyperrun
