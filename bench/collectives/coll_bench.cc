// Collectives against MPI's own in the same processes, as a training step uses them: before each timed call
// the owner rewrites its input, and the timed part ends when every rank has read the whole result.
//
//   mpirun -np P --oversubscribe --bind-to none coll_bench [--seconds S] [--sizes B,B,...]
//          [--ops ar,rs,ag,a2a] [--messages] [--checksums]
//
// With --checksums it compares collectives that carry checksums with those that carry none, and the ratio is
// that of their times.
//
// Samples of the two are interleaved; a sample is the maximum over the ranks. The benchmark prints a table of
// medians (us) and of the median of ratios MPI / hyperrun, and one JSON object a line with the same on
// standard error. Bytes are those of the vector that is reduced, or of the whole tensor that is scattered,
// gathered or exchanged.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/group.h"
#include "collectives/world.h"
#include "memory/shared_window.h"

namespace hyperrun {
namespace {

struct Options {
  double seconds = 0.5;
  std::vector<std::int64_t> sizes = {8, 64 << 10, 1 << 20, 16 << 20};
  std::string ops = "ar,rs,ag,a2a";
  bool messages = false, checksums = false;
};

struct Contender {
  std::function<void()> call;
  std::byte* input;
  std::int64_t input_bytes;
  const std::byte* result;
  std::int64_t result_bytes;
};

volatile float sink = 0;

float read_all(const std::byte* data, std::int64_t bytes) {
  constexpr std::size_t kLanes = 32;
  float lanes[kLanes] = {};
  const auto* f = reinterpret_cast<const float*>(data);
  const auto n = static_cast<std::size_t>(bytes) / sizeof(float);
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += f[i + l];
  }
  float sum = 0;
  for (; i < n; ++i) sum += f[i];
  for (const float l : lanes) sum += l;
  return sum;
}

double sample(const Contender& c, const std::function<void()>& meet) {
  std::memset(c.input, 0, static_cast<std::size_t>(c.input_bytes));
  MPI_Barrier(MPI_COMM_WORLD);
  meet();
  const double start = MPI_Wtime();
  c.call();
  sink = read_all(c.result, c.result_bytes);
  const double mine = (MPI_Wtime() - start) * 1e6;
  double slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

class Bench {
 public:
  Bench(const Options& options, const MpiHosts& hosts, Arena& arena)
      : options_(options),
        plain_(hosts, arena, false),
        summed_(hosts, arena, true),
        rank_(hosts.rank()),
        p_(hosts.topology().size()) {
    a_ = arena.base();
    b_ = arena.base() + arena.budget().value / 2;
  }

  void run() {
    if (rank_ == 0) {
      std::printf("# %d ranks, %s\n%-16s %12s %14s %14s %10s %8s\n", p_,
                  options_.messages ? "messages" : "one host", "collective", "bytes", first(), second(),
                  options_.checksums ? "ratio" : "mpi/ours", "samples");
    }
    for (const std::int64_t bytes : options_.sizes) {
      for (const char* op : {"ar", "rs", "ag", "a2a"}) {
        const bool wanted = ("," + options_.ops + ",").find("," + std::string(op) + ",") != std::string::npos;
        const bool divides = std::string(op) == "ar" || bytes >= 4 * p_;
        if (wanted && divides) compare(op, bytes);
      }
    }
  }

 private:
  // A World, and the group of all its ranks.
  struct Side {
    Side(const MpiHosts& hosts, Arena& arena, bool checksums) {
      WorldOptions options;
      options.checksums = checksums;
      world = make_mpi_world(hosts, arena, options);
      std::vector<int> ranks;
      for (int r = 0; r < world->size(); ++r) ranks.push_back(r);
      group = &world->make_group(0, ranks);
    }
    void run(const CollectiveArgs& args) const { world->wait(*group->start(args)); }

    std::unique_ptr<World> world;
    Group* group = nullptr;
  };

  const char* first() const { return options_.checksums ? "without us" : "mpi us"; }
  const char* second() const { return options_.checksums ? "checksums us" : "hyperrun us"; }

  // MPI's collective, and ours on one side.
  std::pair<Contender, Contender> contenders(const std::string& op, std::int64_t bytes, const Side& side) {
    const std::int64_t n = bytes / 4, share = n / p_;
    const int count = static_cast<int>(n), part = static_cast<int>(share);
    const std::int64_t whole = share * p_ * 4, piece = share * 4;
    if (op == "ar") {
      return {
          {[=, this] { MPI_Allreduce(MPI_IN_PLACE, b_, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }, b_,
           bytes, b_, bytes},
          {[=, this, &side] { side.run({.kind = Collective::kAllReduce, .in = a_, .out = a_, .inner = n}); },
           a_, bytes, a_, bytes}};
    }
    if (op == "rs") {
      return {
          {[=, this] { MPI_Reduce_scatter_block(b_, b_ + whole, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); },
           b_, whole, b_ + whole, piece},
          {[=, this, &side] {
             side.run({.kind = Collective::kReduceScatter, .in = a_, .out = a_ + whole, .inner = share});
           },
           a_, whole, a_ + whole, piece}};
    }
    if (op == "ag") {
      return {{[=, this] { MPI_Allgather(b_, part, MPI_FLOAT, b_ + whole, part, MPI_FLOAT, MPI_COMM_WORLD); },
               b_, piece, b_ + whole, whole},
              {[=, this, &side] {
                 side.run({.kind = Collective::kAllGather, .in = a_, .out = a_ + whole, .inner = share});
               },
               a_, piece, a_ + whole, whole}};
    }
    const AllToAllShape shape{.a = 1, .x = p_, .b = 1, .y = p_, .c = share};
    return {{[=, this] { MPI_Alltoall(b_, part, MPI_FLOAT, b_ + whole, part, MPI_FLOAT, MPI_COMM_WORLD); },
             b_, whole, b_ + whole, whole},
            {[=, this, &side] {
               side.run({.kind = Collective::kAllToAll, .in = a_, .out = a_ + whole, .all_to_all = shape});
             },
             a_, whole, a_ + whole, whole}};
  }

  // Takes enough samples for a median, but no longer than asked; all ranks agree on when to stop.
  void compare(const std::string& op, std::int64_t bytes) {
    const auto [mpi, plain] = contenders(op, bytes, plain_);
    const Contender summed = contenders(op, bytes, summed_).second;
    const Contender& one = options_.checksums ? plain : mpi;
    const Contender& other = options_.checksums ? summed : plain;
    const auto meet = [this] { plain_.run({.kind = Collective::kBarrier}); };
    std::vector<double> one_us, other_us, ratios;
    const double start = MPI_Wtime();
    for (int more = 1; more != 0;) {
      one_us.push_back(sample(one, meet));
      other_us.push_back(sample(other, meet));
      const double ratio = one_us.back() / other_us.back();
      ratios.push_back(options_.checksums ? 1 / ratio : ratio);
      more = ratios.size() < 9 || (MPI_Wtime() - start < options_.seconds && ratios.size() < 2000) ? 1 : 0;
      MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank_ != 0) return;
    std::printf("%-16s %12lld %14.1f %14.1f %10.2f %8zu\n", op.c_str(), static_cast<long long>(bytes),
                median(one_us), median(other_us), median(ratios), ratios.size());
    std::fflush(stdout);
    std::fprintf(stderr,
                 "{\"op\":\"%s\",\"ranks\":%d,\"bytes\":%lld,\"%s\":%.2f,\"%s\":%.2f,\"ratio\":%.3f,"
                 "\"samples\":%zu}\n",
                 op.c_str(), p_, static_cast<long long>(bytes), options_.checksums ? "plain_us" : "mpi_us",
                 median(one_us), options_.checksums ? "checksums_us" : "hyperrun_us", median(other_us),
                 median(ratios), ratios.size());
  }

  Options options_;
  Side plain_, summed_;
  int rank_, p_;
  std::byte *a_ = nullptr, *b_ = nullptr;
};

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--messages") o.messages = true;
    if (arg == "--checksums") o.checksums = true;
    if (i + 1 == argc) break;
    if (arg == "--seconds") o.seconds = std::stod(argv[i + 1]);
    if (arg == "--ops") o.ops = argv[i + 1];
    if (arg != "--sizes") continue;
    o.sizes.clear();
    for (const char* s = argv[i + 1]; s != nullptr && *s != 0;
         s = std::strchr(s, ',') ? std::strchr(s, ',') + 1 : nullptr) {
      o.sizes.push_back(std::stoll(s));
    }
  }
  return o;
}

}  // namespace
}  // namespace hyperrun

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    const hyperrun::Options options = hyperrun::parse(argc, argv);
    const hyperrun::MpiHosts hosts(MPI_COMM_WORLD, options.messages);
    const std::int64_t largest = *std::max_element(options.sizes.begin(), options.sizes.end());
    hyperrun::Arena arena = hyperrun::make_shared_arena(hosts, hyperrun::Bytes(4 * largest + (8 << 20)));
    hyperrun::Bench(options, hosts, arena).run();
  }
  MPI_Finalize();
  return 0;
}
