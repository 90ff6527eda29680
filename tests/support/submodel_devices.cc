#include "tests/support/submodel_devices.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <numeric>

#include "runtime/base/error.h"
#include "runtime/device/tensor_parts.h"
#include "runtime/spec/plan_io.h"

namespace hyperrun::testing {
namespace {

std::vector<float> to_floats(const std::vector<std::byte>& bytes, DType dtype) {
  std::vector<float> values(bytes.size() / static_cast<std::size_t>(size_of(dtype)));
  if (dtype == DType::kF32) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t narrow = 0;
    std::memcpy(&narrow, bytes.data() + 2 * i, 2);
    values[i] = bf16_to_f32(narrow);
  }
  return values;
}

std::vector<std::byte> to_bytes(const std::vector<float>& values, DType dtype) {
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(size_of(dtype)));
  if (dtype == DType::kF32) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t narrow = f32_to_bf16(values[i]);
    std::memcpy(bytes.data() + 2 * i, &narrow, 2);
  }
  return bytes;
}

}  // namespace

SubmodelDevices::SubmodelDevices(const SubmodelSpec& spec)
    : job_(spec.job),
      plan_(plan_from_bytes(hyperrun::to_bytes(compile_submodel(spec).plan), "test")),
      threads_(Topology::one_host(job_.supernode.devices), job_.supernode.hbm, plan_.peaks(),
               std::filesystem::temp_directory_path().string()) {
  check_fits(plan_, job_.supernode);
  executors_.resize(static_cast<std::size_t>(job_.supernode.devices));
  threads_.run([&](int d) {
    executors_[static_cast<std::size_t>(d)] = std::make_unique<Executor>(
        plan_, threads_.memory(d), threads_.world(d), feed_, ExecutorOptions{.seed = job_.run.seed});
  });
  run("init", {});
}

SubmodelDevices::Result SubmodelDevices::run(const std::string& program, const Scalars& scalars,
                                             std::vector<int> devices) {
  const std::size_t index = plan_.program_index(program);
  if (devices.empty()) {
    devices.resize(executors_.size());
    std::iota(devices.begin(), devices.end(), 0);
  }
  Result result;
  std::vector<std::vector<OutputPart>> parts(executors_.size());
  std::mutex mutex;
  threads_.run([&](int d) {
    if (std::ranges::find(devices, d) == devices.end()) return;
    const InvocationResult& r = executors_[static_cast<std::size_t>(d)]->run(index, scalars);
    const std::lock_guard lock(mutex);
    for (const auto& [name, value] : r.outputs) result.scalars[name] = value;
    parts[static_cast<std::size_t>(d)] = output_parts_from_bytes(hyperrun::to_bytes(r.arrays));
  });
  if (program == "score") result.logp = whole_output_as<float>(plan_, index, "logp", parts);
  return result;
}

const StateTensor& SubmodelDevices::tensor(const std::string& name) const {
  const auto& state = plan_.roles.front().state;
  const auto found = std::ranges::find(state, name, &StateTensor::name);
  HR_CHECK(found != state.end(), "no state is called " + name);
  return *found;
}

std::vector<float> SubmodelDevices::read(const std::string& name) {
  const StateTensor& t = tensor(name);
  std::int64_t n = size_of(t.dtype);
  for (const std::int64_t size : t.shape) n *= size;
  std::vector<std::byte> whole(static_cast<std::size_t>(n));
  for (const int d : owners(t, plan_, 0)) {
    std::vector<std::byte> part(static_cast<std::size_t>(t.bytes.value));
    if (t.tier == Tier::kHbm)
      std::ranges::copy(threads_.arena(d).view(t.offset, t.bytes), part.begin());
    else
      threads_.memory(d).beyond(t.tier).read(t.offset, part);
    copy_part(t, plan_.mesh, d, 0, t.bytes.value, whole.data(), part.data(), PartCopy::kIntoWhole);
  }
  return to_floats(whole, t.dtype);
}

void SubmodelDevices::write(const std::string& name, const std::vector<float>& values) {
  const StateTensor& t = tensor(name);
  HR_CHECK(t.tier == Tier::kHbm, name + " lies beyond HBM");
  std::vector<std::byte> whole = to_bytes(values, t.dtype);
  for (int d = 0; d < threads_.size(); ++d)
    copy_part(t, plan_.mesh, d, 0, t.bytes.value, whole.data(),
              threads_.arena(d).view(t.offset, t.bytes).data(), PartCopy::kOutOfWhole);
}

std::vector<float> SubmodelDevices::read_slot(const std::string& port, std::int64_t slot) {
  const std::vector<float> all = read(port);
  const std::int64_t n = std::ssize(all) / tensor(port).shape[0];
  return {all.begin() + slot * n, all.begin() + (slot + 1) * n};
}

void SubmodelDevices::write_slot(const std::string& port, std::int64_t slot,
                                 const std::vector<float>& values) {
  std::vector<float> all = read(port);
  HR_CHECK(std::ssize(values) * tensor(port).shape[0] == std::ssize(all), port);
  std::ranges::copy(values, all.begin() + slot * std::ssize(values));
  write(port, all);
}

std::map<std::string, std::vector<float>> SubmodelDevices::state(TensorClass cls) {
  std::map<std::string, std::vector<float>> all;
  for (const StateTensor& t : plan_.roles.front().state)
    if (t.cls == cls) all[t.name] = read(t.name);
  return all;
}

std::vector<float> SubmodelDevices::sum(const std::string& gradient, int device) {
  const Program& program = plan_.roles.front().program("backward");
  const auto found = std::ranges::find(program.buffers, gradient, &Buffer::name);
  HR_CHECK(found != program.buffers.end() && found->state, "no sum is called " + gradient);
  const auto bytes = threads_.arena(device).view(found->offset, found->bytes);
  return to_floats({bytes.begin(), bytes.end()}, DType::kF32);
}

}  // namespace hyperrun::testing
