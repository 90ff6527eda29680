#include "runtime/device/output_arrays.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

#include "runtime/base/error.h"
#include "runtime/device/tensor_parts.h"
#include "runtime/ir/zigzag.h"

namespace hyperrun {
namespace {

// Format: for each part the lengths of its name and of its bytes, then both.
using Length = std::uint64_t;

void append(std::string& to, Length n) { to.append(reinterpret_cast<const char*>(&n), sizeof n); }

Error torn() { return Error(Code::kControl, "the result of an invocation has torn arrays"); }

// Takes `n` bytes from the front.
std::string_view take(std::string_view& bytes, Length n) {
  if (n > bytes.size()) throw torn();
  const std::string_view taken = bytes.substr(0, n);
  bytes.remove_prefix(n);
  return taken;
}

Length take_length(std::string_view& bytes) {
  Length n = 0;
  std::memcpy(&n, take(bytes, sizeof n).data(), sizeof n);
  return n;
}

// The output as the StateTensor that copy_part and owners expect.
StateTensor as_state(const Output& output) {
  StateTensor t;
  t.name = output.name;
  t.dtype = output.dtype;
  t.shape = output.shape;
  t.layout = output.layout;
  t.bytes = output.operand.bytes;
  return t;
}

const Output* find(const Program& program, std::string_view name) {
  const auto found = std::ranges::find(program.outputs, name, &Output::name);
  return found == program.outputs.end() ? nullptr : &*found;
}

// The first role with this output.
std::size_t role_with(const Plan& plan, std::size_t program, std::string_view name) {
  for (std::size_t r = 0; r < plan.roles.size(); ++r)
    if (find(plan.roles[r].programs[program], name) != nullptr) return r;
  HR_CHECK(false, "no device has the output " + std::string(name));
  return 0;
}

// Reorders dimension `d` from a ring's zigzag to the natural order, or back.
std::vector<std::byte> reordered(const std::vector<std::byte>& array, const Output& output, std::size_t d,
                                 bool to_natural) {
  const std::int64_t length = output.shape[d];
  const Zigzag order = Zigzag::of(length, output.rings[d]);
  std::int64_t line = size_of(output.dtype);
  for (std::size_t inner = d + 1; inner < output.shape.size(); ++inner) line *= output.shape[inner];
  std::vector<std::byte> moved(array.size());
  for (std::int64_t stored = 0; stored < std::ssize(array) / line; ++stored) {
    const std::int64_t place = stored % length, natural = stored - place + order.position(place);
    std::copy_n(array.begin() + (to_natural ? stored : natural) * line, line,
                moved.begin() + (to_natural ? natural : stored) * line);
  }
  return moved;
}

}  // namespace

bool reports(const Output& output, const Plan& plan, int device) {
  const std::vector<int> first = owners(as_state(output), plan, plan.role_of(device));
  return std::ranges::find(first, device) != first.end();
}

std::string to_bytes(std::span<const OutputPart> parts) {
  std::string bytes;
  for (const OutputPart& part : parts) {
    if (!part.reported) continue;
    append(bytes, part.name.size());
    append(bytes, part.bytes.size());
    bytes += part.name;
    bytes.append(reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size());
  }
  return bytes;
}

std::vector<OutputPart> output_parts_from_bytes(std::string_view bytes) {
  std::vector<OutputPart> parts;
  while (!bytes.empty()) {
    const Length name = take_length(bytes), size = take_length(bytes);
    OutputPart& part = parts.emplace_back();
    part.name = take(bytes, name);
    const std::string_view content = take(bytes, size);
    part.bytes.resize(content.size());
    if (!content.empty()) std::memcpy(part.bytes.data(), content.data(), content.size());
  }
  return parts;
}

std::vector<std::byte> whole_output(const Plan& plan, std::size_t program, std::string_view name,
                                    std::span<const std::vector<OutputPart>> parts) {
  const std::size_t role = role_with(plan, program, name);
  const Output& output = *find(plan.roles[role].programs[program], name);
  HR_CHECK(output.layout.partial.empty(), output.name + " is not complete");
  const StateTensor tensor = as_state(output);
  std::int64_t n = size_of(output.dtype);
  for (const std::int64_t size : output.shape) n *= size;
  std::vector<std::byte> whole(static_cast<std::size_t>(n));
  for (const int device : owners(tensor, plan, role)) {
    const auto& reported = parts[static_cast<std::size_t>(device)];
    const auto part = std::ranges::find(reported, name, &OutputPart::name);
    if (part == reported.end() || std::ssize(part->bytes) != tensor.bytes.value)
      throw Error(Code::kControl, fmt::format("device {} has not told its part of {}, {} bytes", device,
                                              output.name, tensor.bytes.value));
    std::vector<std::byte> bytes = part->bytes;
    copy_part(tensor, plan.mesh, device, 0, std::ssize(bytes), whole.data(), bytes.data(),
              PartCopy::kIntoWhole);
  }
  for (std::size_t d = 0; d < output.rings.size(); ++d)
    if (output.rings[d] > 1) whole = reordered(whole, output, d, /*to_natural=*/true);
  return whole;
}

std::vector<std::vector<OutputPart>> split_output(const Plan& plan, std::size_t program,
                                                  std::string_view name, std::span<const std::byte> whole) {
  const std::size_t role = role_with(plan, program, name);
  const Output& output = *find(plan.roles[role].programs[program], name);
  const StateTensor tensor = as_state(output);
  std::vector<std::byte> stored(whole.begin(), whole.end());
  for (std::size_t d = 0; d < output.rings.size(); ++d)
    if (output.rings[d] > 1) stored = reordered(stored, output, d, /*to_natural=*/false);
  std::vector<std::vector<OutputPart>> parts(static_cast<std::size_t>(plan.mesh.devices()));
  for (const int device : owners(tensor, plan, role)) {
    OutputPart part{output.name, std::vector<std::byte>(static_cast<std::size_t>(tensor.bytes.value))};
    copy_part(tensor, plan.mesh, device, 0, tensor.bytes.value, stored.data(), part.bytes.data(),
              PartCopy::kOutOfWhole);
    parts[static_cast<std::size_t>(device)].push_back(std::move(part));
  }
  return parts;
}

}  // namespace hyperrun
