// Outputs of an invocation that are arrays (drawn tokens, log probabilities). They stay distributed. Each
// device has its part. One of the devices with equal parts reports it, and the caller puts the parts
// together.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ir/program.h"

namespace hyperrun {

// A device's part of such an output.
struct OutputPart {
  std::string name;
  std::vector<std::byte> bytes;
  bool reported = true;  // true if this device reports it: it is the first of those with the same part
  bool operator==(const OutputPart&) const = default;
};

// True if `device` reports the output. Its coordinates are then 0 except on the axes that split the output
// and, in a pipeline, the axis of its role.
bool reports(const Output& output, const Plan& plan, int device);

// The reported parts as bytes, as a result carries them.
std::string to_bytes(std::span<const OutputPart> parts);
// Reads such bytes; throws kControl if they are malformed.
std::vector<OutputPart> output_parts_from_bytes(std::string_view bytes);

// Puts together the whole array of an output of program `program`, row-major, with all dimensions in their
// natural order. `parts` are the reported parts by device. Throws kControl if one is missing or has another
// size than planned.
std::vector<std::byte> whole_output(const Plan& plan, std::size_t program, std::string_view name,
                                    std::span<const std::vector<OutputPart>> parts);

// The whole array as numbers of the output's type.
template <class T>
std::vector<T> whole_output_as(const Plan& plan, std::size_t program, std::string_view name,
                               std::span<const std::vector<OutputPart>> parts) {
  const std::vector<std::byte> bytes = whole_output(plan, program, name, parts);
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// The reverse of whole_output: the reported parts of an array, by device.
std::vector<std::vector<OutputPart>> split_output(const Plan& plan, std::size_t program,
                                                  std::string_view name, std::span<const std::byte> whole);

}  // namespace hyperrun
