#include "runtime/run/state_comparison.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "runtime/base/error.h"
#include "runtime/base/joined.h"
#include "runtime/device/state_hashes.h"

namespace hyperrun {
namespace {

using Hashes = std::vector<std::vector<std::uint64_t>>;  // by device and state tensor of its role

// The devices that share one part: those that are wrong, and those that they differ from.
struct Difference {
  const SharedPart* part = nullptr;
  std::vector<int> wrong, right;  // right is empty if there is no majority
};

Difference difference_in(const SharedPart& part, const Hashes& hashes) {
  std::map<std::uint64_t, std::vector<int>> devices;
  for (const SharedPart::Holder& c : part.holders)
    devices[hashes[static_cast<std::size_t>(c.device)][c.tensor]].push_back(c.device);
  Difference d{&part, {}, {}};
  if (devices.size() < 2) return d;
  for (const auto& [hash, members] : devices) {
    const bool majority = 2 * members.size() > part.holders.size();
    std::vector<int>& list = majority ? d.right : d.wrong;
    list.insert(list.end(), members.begin(), members.end());
  }
  std::ranges::sort(d.wrong);
  return d;
}

// "device 3 (host a)", "devices 0 (host a) and 1 (host b)".
std::string describe(const std::vector<int>& devices, const std::vector<std::string>& hosts) {
  std::string text = devices.size() == 1 ? "device " : "devices ";
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto d = static_cast<std::size_t>(devices[i]);
    if (i > 0) text += i + 1 == devices.size() ? " and " : ", ";
    text += d < hosts.size() ? fmt::format("{} (host {})", d, hosts[d]) : fmt::format("{}", d);
  }
  return text;
}

std::string when(std::int64_t step, std::int64_t clean) {
  return fmt::format("found after step {}; after step {} all were equal", step, clean);
}

std::string describe(const Difference& d) {
  const std::string& name = d.part->tensor;
  if (!d.right.empty())
    return fmt::format("{} has other bits than on {} other device{}", name, d.right.size(),
                       d.right.size() == 1 ? "" : "s");
  return fmt::format("{} differs between them, and nothing tells which of them is right", name);
}

}  // namespace

void StateComparison::require_equal(std::span<const tasks::InvocationDone> results, std::int64_t step,
                                    std::int64_t clean, const std::vector<std::string>& hosts) const {
  Hashes hashes;
  for (std::size_t d = 0; d < results.size(); ++d)
    hashes.push_back(
        hashes_from_bytes(results[d].data, plan_.of_device(static_cast<std::int64_t>(d)).state.size()));
  std::vector<Difference> differences;
  std::set<int> blamed;
  for (const SharedPart& r : parts_) {
    Difference d = difference_in(r, hashes);
    if (d.wrong.empty()) continue;
    blamed.insert(d.wrong.begin(), d.wrong.end());
    differences.push_back(std::move(d));
  }
  if (differences.empty()) return;
  std::string cause = describe(differences.front());
  if (differences.size() > 1) cause += fmt::format(", and so have {} more parts", differences.size() - 1);
  throw Error(Code::kCorrupt, cause + "; " + when(step, clean))
      .at(describe(std::vector(blamed.begin(), blamed.end()), hosts));
}

}  // namespace hyperrun
