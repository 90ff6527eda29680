#include "runtime/ir/tensor_key.h"

namespace hyperrun {

std::uint64_t tensor_key(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char ch : name) hash = (hash ^ static_cast<unsigned char>(ch)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace hyperrun
