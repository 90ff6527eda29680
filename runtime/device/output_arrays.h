// Outputs of an invocation that are arrays (drawn tokens, log probabilities). They stay as they
// lie: each device has its part, one of those that hold the same sends it, and who has asked puts the parts
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

// What a device has of such an output.
struct OutputPart {
  std::string name;
  std::vector<std::byte> bytes;
  bool told = true;  // by this device: it is the first of those that hold the same
  bool operator==(const OutputPart&) const = default;
};

// Whether the output is told by `device`, whose coordinates then are 0 but on the axes that split the output
// or, of a pipeline, say its role.
bool tells(const Output& output, const Plan& plan, int device);

// Those parts that are told, as a result carries them.
std::string to_bytes(std::span<const OutputPart> parts);
// Throws kControl when the bytes are none.
std::vector<OutputPart> output_parts_from_bytes(std::string_view bytes);

// The array that all devices together have left in an output of program `program`, row-major, all dimensions
// in their natural order. `parts`: by device, what each tells. Throws kControl when one is missing or has
// another size than planned.
std::vector<std::byte> whole_output(const Plan& plan, std::size_t program, std::string_view name,
                                    std::span<const std::vector<OutputPart>> parts);

// The same as numbers, of as many bytes as the output's type has.
template <class T>
std::vector<T> whole_output_as(const Plan& plan, std::size_t program, std::string_view name,
                               std::span<const std::vector<OutputPart>> parts) {
  const std::vector<std::byte> bytes = whole_output(plan, program, name, parts);
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// The reverse: by device, the parts of such an array that it tells.
std::vector<std::vector<OutputPart>> split_output(const Plan& plan, std::size_t program,
                                                  std::string_view name, std::span<const std::byte> whole);

}  // namespace hyperrun
