#include "runtime/forecast/chakra_trace.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/ir/collective_args.h"
#include "runtime/report/chakra.h"
#include "runtime/report/file.h"
#include "runtime/report/writable.h"

namespace hyperrun {
namespace {

std::size_t at(StreamKind s) { return static_cast<std::size_t>(s); }

// The groups of devices in the traces, numbered in the order of their first use.
class ChakraGroups {
 public:
  explicit ChakraGroups(const Mesh& mesh) : mesh_(mesh) {}

  const std::vector<int>& members(int device, const AxisList& axes) {
    return groups_[static_cast<std::size_t>(number(device, axes))];
  }
  std::string key(int device, const AxisList& axes) { return std::to_string(number(device, axes)); }
  const std::vector<std::vector<int>>& all() const { return groups_; }

 private:
  int number(int device, const AxisList& axes) {
    const auto [of_device, unknown] = of_device_.try_emplace({device, axes}, 0);
    if (!unknown) return of_device->second;
    std::vector<int> members = mesh_.group(device, axes);
    const auto [it, is_new] = numbers_.try_emplace(members, static_cast<int>(groups_.size()));
    if (is_new) groups_.push_back(std::move(members));
    return of_device->second = it->second;
  }

  const Mesh& mesh_;
  std::map<std::pair<int, AxisList>, int> of_device_;
  std::map<std::vector<int>, int> numbers_;
  std::vector<std::vector<int>> groups_;
};

ChakraCollective chakra_kind(instr::CollectiveKind kind) {
  switch (kind) {
    case instr::CollectiveKind::kReduceScatter: return ChakraCollective::kReduceScatter;
    case instr::CollectiveKind::kAllGather: return ChakraCollective::kAllGather;
    case instr::CollectiveKind::kAllToAll:
    case instr::CollectiveKind::kAllToAllV: return ChakraCollective::kAllToAll;
    default: return ChakraCollective::kAllReduce;
  }
}

// Writes the nodes of one device. Instruction i is node 2i. A shift both sends and receives, and is also node
// 2i + 1.
class DeviceNodes {
 public:
  DeviceNodes(const Program& program, int device, ChakraGroups& groups, ChakraWriter& writer)
      : program_(program), device_(device), groups_(groups), writer_(writer) {}

  void write(const std::vector<Span>& spans) {
    for (std::size_t i = 0; i < program_.instrs.size(); ++i) {
      const Instr& instr = program_.instrs[i];
      ChakraWork w{.id = 2 * i, .name = name_of(instr)};
      w.after = dependencies(instr);
      w.start = Nanos(spans[i].begin);
      w.duration = Nanos(spans[i].end - spans[i].begin);
      order_[at(instr.stream)].push_back(i);
      if (const auto* c = std::get_if<instr::Collective>(&instr.op))
        communicate(*c, w);
      else
        compute(instr, w);
    }
  }

 private:
  std::string name_of(const Instr& instr) const {
    return instr.origin < 0 ? std::string(name(instr.op))
                            : program_.origins[static_cast<std::size_t>(instr.origin)];
  }

  // The nodes on which an instruction depends: the previous one of its stream, and the events of other
  // streams.
  std::vector<std::uint64_t> dependencies(const Instr& instr) const {
    std::vector<std::uint64_t> list;
    const auto add = [&](StreamKind stream, std::size_t position) {
      const std::size_t i = order_[at(stream)][position];
      list.push_back(2 * i);
      if (shifts(program_.instrs[i])) list.push_back(2 * i + 1);
    };
    if (const auto& own = order_[at(instr.stream)]; !own.empty()) add(instr.stream, own.size() - 1);
    for (const Event& e : instr.waits) add(e.stream, static_cast<std::size_t>(e.seq) - 1);
    return list;
  }

  static bool shifts(const Instr& instr) {
    const auto* c = std::get_if<instr::Collective>(&instr.op);
    return c != nullptr && c->kind == instr::CollectiveKind::kShift;
  }

  void compute(const Instr& instr, ChakraWork& w) {
    const Work work = hyperrun::work(instr, program_.mesh);
    w.type = instr.stream == StreamKind::kDmaIn    ? ChakraNode::kMemLoad
             : instr.stream == StreamKind::kDmaOut ? ChakraNode::kMemStore
                                                   : ChakraNode::kCompute;
    w.operations = work.flops.value;
    w.bytes = work.moved.value > 0 ? work.moved : work.hbm;
    writer_.add(w);
  }

  void communicate(const instr::Collective& c, ChakraWork& w) {
    const std::vector<int>& members = groups_.members(device_, c.axes);
    const auto p = static_cast<int>(members.size());
    const CollectiveArgs args = collective_args(c, instr::is_message(c.kind) ? 2 : p);
    w.bytes = Bytes(elements(args, instr::is_message(c.kind) ? 2 : p) * size_of(args.dtype));
    const auto message = [&](ChakraNode type, int peer) {
      w.type = type;
      w.from = type == ChakraNode::kSend ? device_ : peer;
      w.to = type == ChakraNode::kSend ? peer : device_;
      w.tag = tags_[{type, peer}]++;
      writer_.add(w);
    };
    if (c.kind == instr::CollectiveKind::kSend || c.kind == instr::CollectiveKind::kRecv)
      return message(c.kind == instr::CollectiveKind::kSend ? ChakraNode::kSend : ChakraNode::kRecv,
                     members[static_cast<std::size_t>(c.peer)]);
    if (c.kind == instr::CollectiveKind::kShift) {
      const auto me = static_cast<int>(std::ranges::find(members, device_) - members.begin());
      message(ChakraNode::kSend, members[static_cast<std::size_t>((me + 1) % p)]);
      ++w.id;
      return message(ChakraNode::kRecv, members[static_cast<std::size_t>((me + p - 1) % p)]);
    }
    w.type = ChakraNode::kCollective;
    w.collective = chakra_kind(c.kind);
    w.group = groups_.key(device_, c.axes);
    writer_.add(w);
  }

  const Program& program_;
  int device_;
  ChakraGroups& groups_;
  ChakraWriter& writer_;
  std::array<std::vector<std::size_t>, kStreams> order_;
  std::map<std::pair<ChakraNode, int>, std::int32_t> tags_;  // next tag, by direction and peer
};

}  // namespace

void write_chakra(const std::string& prefix, const std::vector<int>& devices, const Plan& plan,
                  const SimResult& result) try {
  ChakraGroups groups(plan.mesh);
  for (const int d : devices) {
    ChakraWriter writer(fmt::format("{}.{}.et", prefix, d));
    DeviceNodes(plan.of_device(d).program("train"), d, groups, writer).write(result.times(d).spans);
    writer.close();
  }
  OutputFile file(prefix + ".groups.json", O_WRONLY | O_CREAT | O_TRUNC);
  file.write(chakra_groups(groups.all()));
  file.close();
} catch (const Error& e) {
  throw e.code() == Code::kUnwritable ? at_option("--chakra", e) : e;
}

}  // namespace hyperrun
