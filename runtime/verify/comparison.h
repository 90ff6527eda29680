// Compares the values of many devices with those of one device.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <tuple>
#include <vector>

#include "runtime/verify/merged.h"
#include "runtime/verify/reference.h"
#include "runtime/verify/verify.h"
#include "runtime/verify/whole.h"

namespace hyperrun {

// Collects the parts of each value, and compares it when the last device has made its part.
class Comparison {
 public:
  Comparison(const Merged& sharded, const Mesh& mesh, const Reference& reference, const Counterparts& known,
             int micro_batches);

  void begin_step(std::int64_t step) { step_ = step; }
  // Called by the thread that runs the device.
  void add(int device, const Write& write, std::size_t output, std::span<const std::byte> bytes);
  // The results in the order of the graph. All parts of all values must have been added.
  std::vector<Compared> take();

 private:
  struct Pending {
    Parts parts;
    int missing = 0;
  };
  using Place = std::tuple<std::int64_t, int, int, std::size_t>;  // step, micro-batch, node, output

  Compared compare(const Place& place, const Parts& parts) const;

  const Merged& sharded_;
  const Graph& graph_;
  const Mesh& mesh_;
  const Reference& reference_;
  const Counterparts& known_;
  int micro_batches_;
  std::int64_t step_ = -1;
  std::mutex mutex_;
  std::map<Place, Pending> pending_;
  std::map<Place, Compared> compared_;
};

}  // namespace hyperrun
