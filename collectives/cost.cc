#include "collectives/cost.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr std::int64_t kSliceUnit = 16;

std::int64_t sum(std::span<const std::int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

// Bytes sent in the two halves of a ring: all slices but one, in each half.
std::int64_t ring_all_reduce(std::int64_t n, int p, int i) {
  return 2 * n - slice(n, p, (i + 1) % p).size() - slice(n, p, (i + 2) % p).size();
}

std::int64_t pairwise_all_reduce(std::int64_t n, int p, int i) {
  return 2 * n - slice(n, p, i).size() - slice(n, p, (i + 1) % p).size();
}

// Let p = q + r with q a power of two. The odd ones of the first 2r ranks give all data to their left
// neighbours and get the result back. The remaining q ranks halve, then double.
std::int64_t halving_doubling_all_reduce(std::int64_t n, int p, int i) {
  const int q = static_cast<int>(std::bit_floor(static_cast<unsigned>(p))), r = p - q;
  if (i < 2 * r && i % 2 == 1) return n;
  const int v = i < 2 * r ? i / 2 : i - r;
  std::int64_t sent = i < 2 * r ? n : 0;
  sent += n - slice(n, q, v).size();
  for (int d = 1; d < q; d *= 2) {
    const int first = v / d * d;
    sent += slice(n, q, first + d - 1).end - slice(n, q, first).begin;
  }
  return sent;
}

std::int64_t message_all_reduce(Algorithm algorithm, std::int64_t n, int p, int i) {
  switch (algorithm) {
    case Algorithm::kRing: return ring_all_reduce(n, p, i);
    case Algorithm::kHalvingDoubling: return halving_doubling_all_reduce(n, p, i);
    case Algorithm::kPairwise: return pairwise_all_reduce(n, p, i);
    default: break;
  }
  HR_CHECK(false, "no all-reduce by messages");
}

std::int64_t hierarchical_all_reduce(const CollectiveArgs& args, std::int64_t n, const Place& at) {
  const std::int64_t peers = at.shape.per_host - 1;
  const std::int64_t own = slice(n, at.shape.per_host, at.local_index).size();
  const Algorithm between =
      select_message_all_reduce(args.dtype, args.op, own * size_of(args.dtype), at.shape.hosts);
  return 2 * peers * own + message_all_reduce(between, own, at.shape.hosts, at.host_index);
}

std::int64_t all_reduce(const CollectiveArgs& args, Algorithm algorithm, const Place& at) {
  const int p = at.shape.p;
  const std::int64_t n = elements(args, p), peers = p - 1;
  if (algorithm == Algorithm::kOneShot) return peers * n;
  if (algorithm == Algorithm::kDirect) return 2 * peers * slice(n, p, at.index).size();
  if (algorithm == Algorithm::kHierarchical) return hierarchical_all_reduce(args, n, at);
  return message_all_reduce(algorithm, n, p, at.index);
}

// The receivers of a binomial tree rooted at 0, as seen from `v`: v + 2^k for every 2^k below v's lowest bit.
int binomial_children(int v, int p) {
  int children = 0;
  for (int d = 1; d < p && (v & d) == 0; d *= 2) children += v + d < p ? 1 : 0;
  return children;
}

std::int64_t broadcast(const CollectiveArgs& args, Algorithm algorithm, const Place& at) {
  const int p = at.shape.p;
  const std::int64_t n = elements(args, p);
  if (algorithm == Algorithm::kBinomial) return n * binomial_children((at.index - args.peer + p) % p, p);
  return at.index == args.peer ? 0 : n;
}

std::int64_t moved(const CollectiveArgs& args, Algorithm algorithm, const Place& at) {
  const int p = at.shape.p;
  const bool reads = algorithm == Algorithm::kOneShot || algorithm == Algorithm::kDirect;
  switch (args.kind) {
    case Collective::kAllReduce: return all_reduce(args, algorithm, at);
    case Collective::kReduceScatter:
    case Collective::kAllGather: return (p - 1) * args.outer * args.inner;
    case Collective::kAllToAll: return elements(args, p) / p * (p - 1);
    case Collective::kAllToAllV: {
      const auto counts = reads ? args.recv_counts : args.send_counts;
      return sum(counts) - counts[static_cast<std::size_t>(at.index)];
    }
    case Collective::kShift: return p > 1 ? elements(args, p) : 0;
    case Collective::kBroadcast: return broadcast(args, algorithm, at);
    case Collective::kSend: return reads ? 0 : elements(args, p);
    case Collective::kRecv: return reads ? elements(args, p) : 0;
    case Collective::kBarrier: return 0;
  }
  return 0;
}

// Bytes that a member sends by messages to other members on its host.
class WithinHost {
 public:
  WithinHost(const CollectiveArgs& args, Algorithm algorithm, const Place& place)
      : args_(args),
        algorithm_(algorithm),
        place_(place),
        p_(place.shape.p),
        first_(place.index - place.local_index),
        end_(first_ + place.shape.per_host) {}

  std::int64_t elements_sent() const {
    switch (algorithm_) {
      case Algorithm::kRing: return has(next()) ? moved(args_, algorithm_, place_) : 0;
      case Algorithm::kHalvingDoubling: return halving_doubling();
      case Algorithm::kBinomial: return binomial();
      case Algorithm::kPairwise: return pairwise();
      default: return 0;
    }
  }

 private:
  bool has(int member) const { return first_ <= member && member < end_; }
  int next() const { return (place_.index + 1) % p_; }
  int others() const { return place_.shape.per_host - 1; }

  std::int64_t pairwise() const {
    const std::int64_t n = elements(args_, p_);
    switch (args_.kind) {
      case Collective::kAllReduce: return pairwise_all_reduce(n);
      case Collective::kReduceScatter: return others() * args_.outer * args_.inner;
      case Collective::kAllToAll: return n / p_ * others();
      case Collective::kAllToAllV:
        return sum(args_.send_counts.subspan(static_cast<std::size_t>(first_),
                                             static_cast<std::size_t>(end_ - first_))) -
               args_.send_counts[static_cast<std::size_t>(place_.index)];
      case Collective::kShift: return has(next()) ? n : 0;
      default: return 0;
    }
  }

  // Each rank gets its slices; then the sums go once round.
  std::int64_t pairwise_all_reduce(std::int64_t n) const {
    const std::int64_t round = n - slice(n, p_, next()).size();
    return slice(n, p_, end_ - 1).end - slice(n, p_, first_).begin - slice(n, p_, place_.index).size() +
           (has(next()) ? round : 0);
  }

  // See halving_doubling_all_reduce(). Halving and doubling send the same bytes over one distance: the
  // other's slices and the own.
  std::int64_t halving_doubling() const {
    const std::int64_t n = elements(args_, p_);
    const int q = static_cast<int>(std::bit_floor(static_cast<unsigned>(p_))), r = p_ - q, i = place_.index;
    if (i < 2 * r && i % 2 == 1) return has(i - 1) ? n : 0;
    const int v = i < 2 * r ? i / 2 : i - r;
    std::int64_t sent = i < 2 * r && has(i + 1) ? n : 0;
    const auto slices = [&](int of, int d) {
      const int first = of / d * d;
      return slice(n, q, first + d - 1).end - slice(n, q, first).begin;
    };
    for (int d = 1; d < q; d *= 2) {
      const int w = v ^ d;
      if (has(w < r ? 2 * w : w + r)) sent += slices(w, d) + slices(v, d);
    }
    return sent;
  }

  std::int64_t binomial() const {
    const int v = (place_.index - args_.peer + p_) % p_;
    std::int64_t children = 0;
    for (int d = 1; d < p_ && (v & d) == 0; d *= 2)
      children += v + d < p_ && has((v + d + args_.peer) % p_) ? 1 : 0;
    return children * elements(args_, p_);
  }

  const CollectiveArgs& args_;
  Algorithm algorithm_;
  const Place& place_;
  int p_, first_, end_;  // members on the host
};

double log2_floor(int p) { return std::bit_width(static_cast<unsigned>(p)) - 1; }
double log2_ceil(int p) { return std::bit_width(static_cast<unsigned>(p - 1)); }

double message_all_reduce_time(Algorithm algorithm, double n, int p, const LinkCost& c) {
  const double share = static_cast<double>(p - 1) / p;
  if (algorithm == Algorithm::kHalvingDoubling) {
    const int q = static_cast<int>(std::bit_floor(static_cast<unsigned>(p)));
    const double kept = static_cast<double>(q - 1) / q, fold = p == q ? 0 : 1;
    return 2 * (log2_floor(p) + fold) * c.alpha + 2 * (kept + fold) * n * c.beta +
           (kept + fold) * n * c.gamma;
  }
  return 2 * (p - 1) * c.alpha + 2 * share * n * c.beta + share * n * c.gamma;
}

double all_reduce_time(const CollectiveArgs& args, Algorithm algorithm, const GroupShape& s,
                       const LinkCost& in, const LinkCost& between) {
  const double n = static_cast<double>(elements(args, s.p) * size_of(args.dtype));
  const double share = static_cast<double>(s.p - 1) / s.p;
  if (algorithm == Algorithm::kOneShot) return in.alpha + (s.p - 1) * n * (in.beta + in.gamma);
  if (algorithm == Algorithm::kDirect) return 2 * in.alpha + 2 * share * n * in.beta + share * n * in.gamma;
  if (algorithm != Algorithm::kHierarchical) return message_all_reduce_time(algorithm, n, s.p, between);
  const double local = static_cast<double>(s.per_host - 1) / s.per_host;
  const double part = n / s.per_host;
  const Algorithm outer =
      select_message_all_reduce(args.dtype, args.op, static_cast<std::int64_t>(part), s.hosts);
  return 2 * in.alpha + 2 * local * n * in.beta + local * n * in.gamma +
         message_all_reduce_time(outer, part, s.hosts, between);
}

// Adds up steps that run one after another.
double rounds(Algorithm algorithm, Collective kind, int p) {
  if (algorithm == Algorithm::kBinomial || algorithm == Algorithm::kDissemination) return log2_ceil(p);
  const bool once = algorithm == Algorithm::kOneShot || algorithm == Algorithm::kDirect ||
                    kind == Collective::kSend || kind == Collective::kRecv || kind == Collective::kShift;
  return once ? 1 : p - 1;
}

}  // namespace

Slice slice(std::int64_t n, int p, int i) {
  const std::int64_t each = ((n + p - 1) / p + kSliceUnit - 1) / kSliceUnit * kSliceUnit;
  return {std::min(n, each * i), std::min(n, each * (i + 1))};
}

Bytes wire_bytes(const CollectiveArgs& args, Algorithm algorithm, const Place& place) {
  return Bytes(moved(args, algorithm, place) * size_of(args.dtype));
}

Bytes bytes_within_host(const CollectiveArgs& args, Algorithm algorithm, const Place& place) {
  if (algorithm == Algorithm::kOneShot || algorithm == Algorithm::kDirect)
    return wire_bytes(args, algorithm, place);
  const int local = place.shape.per_host;
  if (local <= 1) return Bytes(0);
  if (algorithm != Algorithm::kHierarchical)
    return Bytes(WithinHost(args, algorithm, place).elements_sent() * size_of(args.dtype));
  const std::int64_t own = slice(elements(args, place.shape.p), local, place.local_index).size();
  return Bytes(2 * (local - 1) * own * size_of(args.dtype));
}

Nanos time(const CollectiveArgs& args, Algorithm algorithm, const GroupShape& shape, const LinkCost& inside,
           const LinkCost& between) {
  if (args.kind == Collective::kAllReduce) {
    return Nanos(std::llround(all_reduce_time(args, algorithm, shape, inside, between)));
  }
  const int p = shape.p;
  const bool local = algorithm == Algorithm::kOneShot || algorithm == Algorithm::kDirect;
  const LinkCost& c = local ? inside : between;
  const double n = static_cast<double>(elements(args, p) * size_of(args.dtype));
  const double steps = rounds(algorithm, args.kind, p);
  double bytes = n * (p - 1) / p;
  if (args.kind == Collective::kBroadcast) bytes = n * steps;
  if (args.kind == Collective::kSend || args.kind == Collective::kRecv) bytes = n;
  if (args.kind == Collective::kShift) bytes = p > 1 ? n : 0;
  const double reduced = args.kind == Collective::kReduceScatter ? bytes : 0;
  return Nanos(std::llround(steps * c.alpha + bytes * c.beta + reduced * c.gamma));
}

}  // namespace hyperrun
