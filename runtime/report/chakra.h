// Chakra execution traces (https://github.com/mlcommons/chakra), for ASTRA-sim and its kin: a file a device,
// a node an instruction with what it depends on, and the groups of the collectives beside them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/units.h"

namespace hyperrun {

// The numbers are Chakra's.
enum class ChakraNode : std::int32_t {
  kMemLoad = 2,
  kMemStore = 3,
  kCompute = 4,
  kSend = 5,
  kRecv = 6,
  kCollective = 7
};
enum class ChakraCollective : std::int64_t {
  kAllReduce = 0,
  kAllGather = 2,
  kAllToAll = 6,
  kReduceScatter = 7
};

// Only what a node of its type has is written.
struct ChakraWork {
  std::uint64_t id = 0;
  std::string name;
  ChakraNode type = ChakraNode::kCompute;
  std::vector<std::uint64_t> after;  // nodes that must have ended
  Nanos start{}, duration{};
  std::int64_t operations = 0;             // of a computation
  Bytes bytes{};                           // that it touches, moves or communicates
  ChakraCollective collective{};           // of a collective
  std::string group;                       // of a collective: its key in the groups' file
  std::int32_t from = 0, to = 0, tag = 0;  // of a message
};

class ChakraWriter {
 public:
  // Throws kUnwritable, here or in any call below.
  explicit ChakraWriter(const std::filesystem::path& path);
  ~ChakraWriter();
  ChakraWriter(const ChakraWriter&) = delete;
  ChakraWriter& operator=(const ChakraWriter&) = delete;

  void add(const ChakraWork& work);
  void close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// {"0": [0, 1], "1": [2, 3]}: the devices of each group, by its key.
std::string chakra_groups(const std::vector<std::vector<int>>& groups);

}  // namespace hyperrun
