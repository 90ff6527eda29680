// The pieces (pieces.h) of every strategy of a job that is asked for. What differs in sizes only is sharded
// once: the graph of a model of few layers under one set of axes and rules serves all sizes of these axes and
// of micro-batches under which attention's heads divide in the same way, as its operators and collectives are
// the same. Sizes that this graph does not divide by are sharded by themselves; what the compiler refuses
// then is no strategy.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "memory/host.h"
#include "runtime/cost/groups.h"
#include "runtime/ir/job.h"
#include "runtime/plan/outermost.h"
#include "runtime/plan/pieces.h"
#include "runtime/plan/strategy.h"

namespace hyperrun {

// A sharded graph of few layers in which nothing is recomputed, and the strategy whose sizes it was made for.
struct ShardedProbe {
  Strategy strategy;
  Graph graph;
};

class PieceTable {
 public:
  // `base`: the model, the machine and the batch; its own strategy is of no meaning.
  explicit PieceTable(const Job& base);
  ~PieceTable();

  // Null where a tensor does not divide over the axes that split it; why_not() says which. Valid as long as
  // the table is.
  const Pieces* find(const Strategy& strategy);
  std::string why_not(const Strategy& strategy);

  // Without data axis and ZeRO, for least_form().
  const Pieces* find_least(Strategy strategy);
  // The same where an axis of them is the outermost: others lie side by side. Its times are bounds as well.
  const Pieces* find_least(Strategy strategy, const Outermost& axis);

  // What was sharded and lowered for strategies, in any size.
  struct Structures;
  static std::size_t instrs_of(const Structures& structures);
  // All that was found of strategies is forgotten, where groups lie is kept; this goes on from what another
  // table of the same job has left, if that is not null.
  std::shared_ptr<Structures> exchange(std::shared_ptr<Structures> others = nullptr);

  // ns that a message takes from stage to stage; 0 without stages.
  double message_time(const Strategy& strategy, const Pieces& pieces);

  // ns a byte that a collective of very many takes along devices as they lie, or of as many with the same
  // number on each of some hosts, if that is less. Nothing smaller takes less.
  double time_per_byte(instr::CollectiveKind kind, const std::vector<int>& ranks, bool or_evenly);
  bool lies_evenly(const std::vector<int>& ranks) { return lies(ranks).shape.per_host > 0; }

  const Machine& machine() const { return machine_; }

  // Strategies of the same one are lowered once, as a rule: all but sizes; of a ring the number of its steps
  // is in the graph. Stages are not.
  std::string key_of_axes(const Strategy& strategy) const;
  // The same without data axis, stages, ZeRO, what is recomputed and where experts' weights lie.
  std::string key_of_group(Strategy strategy) const;

 private:
  struct Structure;
  struct Priced {
    bool divides = false;
    std::string why_not;
    Pieces pieces;
  };

  // Of a step's instructions, ns, where the slowest of their groups lies, and if each lay side by side.
  struct Durations {
    std::vector<double> as_they_lie, side_by_side;
  };

  // How the groups along some axes lie: the first, one that lies apart, and if each lay side by side.
  struct Group {
    const Where *first = nullptr, *apart = nullptr, *side_by_side = nullptr;
    std::vector<const Where*> evenly = {};
  };

  Priced& priced(const Strategy& strategy, const Outermost* axis = nullptr);
  Structure& structure_of(const Strategy& strategy);
  Structure& sharded(const std::string& key, const Strategy& strategy);
  static std::string key_of_graph(const std::string& whole_key);
  // What is known under the key, or a new one.
  std::shared_ptr<const ShardedProbe> sharded_graph(const std::string& key, const Strategy& strategy);
  std::string structure_key(const Strategy& strategy) const;
  Priced price(const Strategy& strategy, const Outermost* axis);
  Durations durations_of(const SizedStep& step, const Strategy& strategy, const Outermost* axis);
  const Group& group_along(const Strategy& strategy, const Mesh& mesh, const AxisList& axes,
                           const Outermost* axis);
  Group group_along(const Mesh& mesh, const AxisList& axes);
  // `axis`: of the mesh, the outermost.
  Group group_along(const Mesh& mesh, const AxisList& axes, AxisId axis, const Outermost& outermost);
  const Where& lies(const std::vector<int>& ranks);
  // Of devices on several hosts of which some have more: as many, if each of their hosts had the same number,
  // as some order of axes may have it. An all-reduce is hierarchical then, and may take less.
  std::vector<const Where*> lie_evenly(const std::vector<int>& ranks);
  // `last_of_first`: the highest rank of the first group.
  std::vector<int> group_apart(const Mesh& mesh, const AxisList& axes, int last_of_first) const;

  Job base_;
  Machine machine_;
  std::vector<int> kind_of_;  // of the probe's layers
  std::shared_ptr<Structures> known_;
  std::unordered_map<std::string, Priced> pieces_;
  Topology topology_;                       // of all devices
  std::map<std::vector<int>, Where> lies_;  // groups, as they lie
  std::unordered_map<std::string, Group> groups_;
  // Of the second and the last stage's first devices, and a message's bytes: ns.
  std::map<std::tuple<int, int, std::int64_t>, double> message_times_;
};

// The strategy without stages, in the order of axes that stands for its own: the compiler shards the same in
// both. What matters to it is how ring, context and tensor axes follow one another: of exchanges that move
// the same it takes the first, and experts over a tensor axis cannot be exchanged in each order.
Strategy as_sharded(Strategy strategy);
// The job of few layers that stands for `base` under the strategy, without stages.
Job probe_job(const Job& base, const Strategy& strategy);
// Of its layers: 0 where there is one kind.
std::vector<int> probe_kinds(const ModelSpec& model);

}  // namespace hyperrun
