// Chakra execution traces (https://github.com/mlcommons/chakra), for ASTRA-sim and the like. Each device has
// a file, each instruction a node with its dependencies. A file beside them has the groups of the
// collectives.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/units.h"

namespace hyperrun {

// The type of a node, with Chakra's numbers.
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

// A node. Only fields that a node of its type has are written.
struct ChakraWork {
  std::uint64_t id = 0;
  std::string name;
  ChakraNode type = ChakraNode::kCompute;
  std::vector<std::uint64_t> after;  // nodes that must have ended
  Nanos start{}, duration{};
  std::int64_t operations = 0;             // operations of a computation
  Bytes bytes{};                           // bytes that it touches, moves or communicates
  ChakraCollective collective{};           // of a collective
  std::string group;                       // key of a collective's group in the groups' file
  std::int32_t from = 0, to = 0, tag = 0;  // ends and tag of a message
};

class ChakraWriter {
 public:
  // Throws kUnwritable, as does any call below.
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

// The devices of each group, by its key: {"0": [0, 1], "1": [2, 3]}.
std::string chakra_groups(const std::vector<std::vector<int>>& groups);

}  // namespace hyperrun
