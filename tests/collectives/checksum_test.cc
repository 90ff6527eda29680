// A bit that flips on the way of a message is found by the rank that receives it, which names the sender.
#include "collectives/checksum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/group.h"
#include "collectives/loopback_port.h"
#include "collectives/world.h"
#include "runtime/base/error.h"

namespace hyperrun {
namespace {

using ::testing::HasSubstr;

constexpr Bytes kArena{1 << 20};
constexpr std::int64_t kHalf = kArena.value / 2;  // inputs lie below it, outputs above

// Sends copies, and flips a bit of the first longer one from rank 0 to rank 1 while it is armed.
class FlippingPort : public MessagePort {
 public:
  FlippingPort(std::shared_ptr<LoopbackWire> wire, int rank, bool& armed)
      : port_(std::move(wire), rank), rank_(rank), armed_(armed) {}

  Ticket send(const std::byte* data, std::int64_t bytes, int to, int tag) override {
    std::vector<std::byte>& copy = copies_.emplace_back(data, data + bytes);
    if (armed_ && rank_ == 0 && to == 1 && bytes > 8) {
      copy[static_cast<std::size_t>(bytes) / 2] ^= std::byte{4};
      armed_ = false;
    }
    return port_.send(copy.data(), bytes, to, tag);
  }
  Ticket receive(std::byte* data, std::int64_t bytes, int from, int tag) override {
    return port_.receive(data, bytes, from, tag);
  }
  bool test(Ticket ticket) override { return port_.test(ticket); }

 private:
  LoopbackPort port_;
  int rank_;
  bool& armed_;
  std::deque<std::vector<std::byte>> copies_;
};

// Ranks of this thread, whose memory a test can reach.
class Ranks {
 public:
  Ranks(const Topology& topology, bool checksums) : arenas_(make_in_process_arenas(topology.size(), kArena)) {
    const std::int64_t bytes = (ControlBlock::bytes(1, topology.size(), checksums) + 63) / 64 * 64;
    memory_ = map_memory(Bytes(bytes * topology.size()));
    for (int r = 0; r < topology.size(); ++r)
      blocks_.emplace_back(memory_.get() + bytes * r, 1, static_cast<int>(topology.peers(r).size()));
    for (int r = 0; r < topology.size(); ++r) {
      Transport t{
          .topology = topology, .arena = &arenas_[static_cast<std::size_t>(r)], .keep_alive = memory_};
      for (const int peer : topology.peers(r)) {
        t.blocks.push_back(blocks_[static_cast<std::size_t>(peer)]);
        t.bells.push_back(&t.blocks.back().bell());
      }
      t.port = std::make_unique<FlippingPort>(wire_, r, armed);
      WorldOptions options;
      options.max_keys = 1;
      options.staging = Bytes(16 << 10);
      options.checksums = checksums;
      worlds_.push_back(std::make_unique<World>(std::move(t), options));
      std::vector<int> all;
      for (int i = 0; i < topology.size(); ++i) all.push_back(i);
      groups_.push_back(&worlds_.back()->make_group(0, all));
    }
  }

  int size() const { return static_cast<int>(worlds_.size()); }
  World& world(int rank) { return *worlds_[static_cast<std::size_t>(rank)]; }
  Cell& cell(int rank) { return blocks_[static_cast<std::size_t>(rank)].cell(0); }
  std::byte* in(int rank) { return arenas_[static_cast<std::size_t>(rank)].base(); }
  std::byte* out(int rank) { return in(rank) + kHalf; }

  void start(int rank, CollectiveArgs args) {
    args.in = in(rank), args.out = out(rank);
    requests_.push_back(groups_[static_cast<std::size_t>(rank)]->start(args));
  }
  void start_all(const CollectiveArgs& args) {
    for (int r = 0; r < size(); ++r) start(r, args);
  }
  // Moves all ranks on until their requests are complete. Returns the first error.
  std::optional<Error> finish() {
    try {
      for (int turn = 0; turn < 10000; ++turn) {
        bool done = true;
        for (int r = 0; r < size(); ++r) done = world(r).progress() && done;
        if (done) return std::nullopt;
      }
    } catch (const Error& e) {
      return e;
    }
    ADD_FAILURE() << "it never ends";
    return std::nullopt;
  }

  bool armed = false;  // whether a message is going to change

 private:
  std::vector<Arena> arenas_;
  std::shared_ptr<std::byte> memory_;
  std::vector<ControlBlock> blocks_;
  std::shared_ptr<LoopbackWire> wire_ = std::make_shared<LoopbackWire>();
  std::vector<std::unique_ptr<World>> worlds_;
  std::vector<Group*> groups_;
  std::vector<Request*> requests_;
};

void expect_corrupt(const std::optional<Error>& e, int from, int to) {
  ASSERT_TRUE(e.has_value());
  EXPECT_EQ(e->code(), Code::kCorrupt);
  EXPECT_THAT(e->cause(), HasSubstr("device " + std::to_string(to) + " has other bytes than device " +
                                    std::to_string(from) + " sent"));
}

const std::vector<std::int64_t> kCounts(2, 3000);

// One collective of each kind between two ranks, each with more bytes than a one-shot.
std::vector<CollectiveArgs> large() {
  CollectiveArgs all_to_all{.kind = Collective::kAllToAll};
  all_to_all.all_to_all = {.a = 3, .x = 4, .b = 5, .y = 6, .c = 40, .gather_x = true};
  CollectiveArgs by_counts{.kind = Collective::kAllToAllV};
  by_counts.send_counts = by_counts.recv_counts = kCounts;
  CollectiveArgs runs{.kind = Collective::kAllGather, .outer = 4, .inner = 400};
  runs.runs = 4, runs.pitch = 150;
  CollectiveArgs rows = runs;
  rows.kind = Collective::kReduceScatter;
  return {{.kind = Collective::kAllReduce, .inner = 3000},
          {.kind = Collective::kReduceScatter, .outer = 3, .inner = 1000},
          rows,
          {.kind = Collective::kAllGather, .outer = 3, .inner = 1000},
          runs,
          all_to_all,
          by_counts,
          {.kind = Collective::kShift, .inner = 3000},
          {.kind = Collective::kBroadcast, .inner = 3000}};
}

// Flips bits of all words that rank 0 gives, so that the ones for rank 1 are among them.
void flip_input(Ranks& ranks) {
  for (std::int64_t at = 0; at < kHalf; at += 4) ranks.in(0)[at] ^= std::byte{1};
}

TEST(Checksums, FindABitThatFlipsInTheSendersMemory) {
  for (const CollectiveArgs& args : large()) {
    SCOPED_TRACE(std::string(name(args.kind)));
    Ranks ranks(Topology::one_host(2), true);
    ranks.start_all(args);
    flip_input(ranks);
    expect_corrupt(ranks.finish(), 0, 1);
  }
}

TEST(Checksums, FindABitThatFlipsInAOneShot) {
  for (const Collective kind : {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather,
                                Collective::kShift, Collective::kBroadcast})
    for (const std::int64_t n : {2, 100}) {
      SCOPED_TRACE(std::string(name(kind)));
      Ranks ranks(Topology::one_host(2), true);
      ranks.start_all({.kind = kind, .inner = n});
      ranks.cell(0).offers[1].tiny[5] ^= std::byte{16};
      ranks.cell(0).payloads[1].bytes[5] ^= std::byte{16};
      expect_corrupt(ranks.finish(), 0, 1);
    }
}

// Rank 0 has reduced its slice and written it to rank 1, which has not looked yet.
TEST(Checksums, FindABitThatFlipsInAReducedSlice) {
  Ranks ranks(Topology::one_host(2), true);
  ranks.start_all({.kind = Collective::kAllReduce, .inner = 3000});
  ranks.world(0).progress();
  ranks.out(1)[8] ^= std::byte{1};
  expect_corrupt(ranks.finish(), 0, 1);
}

TEST(Checksums, FindABitThatFlipsInAMessage) {
  for (const bool between_hosts : {false, true}) {
    Ranks ranks(between_hosts ? Topology::uniform(2, 1) : Topology::one_host(2), true);
    ranks.armed = true;
    ranks.start(1, {.kind = Collective::kRecv, .inner = 100, .peer = 0});
    ranks.start(0, {.kind = Collective::kSend, .inner = 100, .peer = 1});
    if (!between_hosts) flip_input(ranks);
    expect_corrupt(ranks.finish(), 0, 1);
  }
}

TEST(Checksums, FindABitThatFlipsBetweenHosts) {
  for (const CollectiveArgs& args : large()) {
    SCOPED_TRACE(std::string(name(args.kind)));
    Ranks ranks(Topology::uniform(2, 1), true);
    ranks.armed = true;
    ranks.start_all(args);
    expect_corrupt(ranks.finish(), 0, 1);
    EXPECT_FALSE(ranks.armed) << "nothing was sent";
  }
}

// Without checksums the flipped bit arrives, and with them sound messages do: neither test above is vacuous.
TEST(Checksums, AreWhatFindsIt) {
  for (const CollectiveArgs& args : large()) {
    SCOPED_TRACE(std::string(name(args.kind)));
    Ranks plain(Topology::one_host(2), false);
    plain.start_all(args);
    flip_input(plain);
    EXPECT_FALSE(plain.finish().has_value());
    for (const Topology& topology : {Topology::one_host(2), Topology::uniform(2, 1)}) {
      Ranks sound(topology, true);
      for (int i = 0; i < 3 * kSlots; ++i) {
        sound.start_all(args);
        EXPECT_FALSE(sound.finish().has_value());
      }
    }
  }
}

TEST(Checksums, OfABlockIsThatOfItsBytesSideBySide) {
  std::vector<std::byte> bytes(1000), packed(120);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  const Block block{.base = bytes.data(), .count = {2, 3, 4}, .stride = {400, 100, 20}, .run = 5};
  pack(packed.data(), block, 0, block.bytes());
  EXPECT_EQ(checksum(block), checksum(packed.data(), 120));
}

}  // namespace
}  // namespace hyperrun
