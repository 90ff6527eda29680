// Transfers to other hosts' memory, over a scripted port: waiting, taking turns, and the end of transfers
// whose owner is gone.
#include "memory/remote_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "memory/loopback_one_sided.h"
#include "memory/spread_pool.h"
#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr std::int64_t kPiece = RemoteMemory::kPiece.value;

std::vector<std::byte> bytes_of(std::size_t n, unsigned seed) {
  std::vector<std::byte> list(n);
  for (std::size_t i = 0; i < n; ++i) list[i] = static_cast<std::byte>((i * 2654435761U + seed) >> 13);
  return list;
}

// A port that records the ranks asked, in order. Nothing arrives before the test allows it.
class Script : public OneSidedPort {
 public:
  void get(int lane, std::byte*, Bytes bytes, int rank, Bytes) override { begin(lane, rank, bytes); }
  void put(int lane, const std::byte*, Bytes bytes, int rank, Bytes) override { begin(lane, rank, bytes); }
  bool test(int lane) override {
    if (!may_arrive) return false;
    under_way -= sizes_[static_cast<std::size_t>(lane)];
    return true;
  }
  void serve() override { ++served; }

  std::atomic<bool> may_arrive{false};
  std::vector<int> order;
  std::atomic<std::int64_t> begun{0};
  std::int64_t under_way = 0, most = 0;
  int served = 0;

 private:
  void begin(int lane, int rank, Bytes bytes) {
    order.push_back(rank);
    sizes_[static_cast<std::size_t>(lane)] = bytes.value;
    most = std::max(most, under_way += bytes.value);
    ++begun;
  }
  std::array<std::int64_t, kLanes> sizes_{};
};

// An owner thread that makes progress until it is told to stop.
class Owner {
 public:
  explicit Owner(RemoteMemory& memory)
      : thread_([&memory, this] {
          const RemoteMemory::Owner owner(&memory);
          owns_ = true;
          while (!stop_) {
            memory.progress();
            std::this_thread::yield();
          }
        }) {
    while (!owns_) std::this_thread::yield();
  }
  ~Owner() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false}, owns_{false};
  std::thread thread_;
};

TEST(RemoteMemory, TransfersTakeTurnsWithFewPiecesInFlight) {
  auto port = std::make_unique<Script>();
  Script& script = *port;
  RemoteMemory memory(std::move(port));
  std::vector<std::byte> a(static_cast<std::size_t>(8 * kPiece)), b(a.size());
  {
    const Owner owner(memory);
    std::thread first([&] { memory.read(1, Bytes(0), a); });
    while (script.begun < RemoteMemory::kWindow) std::this_thread::yield();
    std::thread second([&] { memory.write(2, Bytes(0), b); });
    while (script.begun < 2L * RemoteMemory::kWindow) std::this_thread::yield();
    script.may_arrive = true;
    first.join();
    second.join();
  }
  ASSERT_EQ(script.order.size(), 16U);
  EXPECT_THAT(std::vector(script.order.begin(), script.order.begin() + 4),
              ::testing::ElementsAre(1, 1, 2, 2));
  // Once both transfers run, neither is ever more than a window ahead.
  int ahead = 0;
  for (std::size_t i = 2; i < 14; ++i) {
    ahead += script.order[i] == 1 ? 1 : -1;
    EXPECT_LE(std::abs(ahead), RemoteMemory::kWindow) << i;
  }
  EXPECT_LE(script.most, OneSidedPort::kLanes * kPiece);
}

TEST(RemoteMemory, ServesOthersWhileNothingIsAskedForHere) {
  auto port = std::make_unique<Script>();
  Script& script = *port;
  RemoteMemory memory(std::move(port));
  EXPECT_TRUE(memory.progress());
  EXPECT_EQ(script.served, 1);
}

TEST(RemoteMemory, WakesAnOwnerThatSleeps) {
  RemoteMemory memory(std::make_unique<LoopbackOneSided>(make_in_process_arenas(2, kMiB)));
  std::atomic<int> woken{0};
  memory.set_wake([&] { ++woken; });
  std::array<std::byte, 8> data{};
  memory.write(1, Bytes(0), data);  // by the owner itself, which is awake
  EXPECT_EQ(woken, 0);
  const Owner owner(memory);
  memory.write(1, Bytes(0), data);
  EXPECT_EQ(woken, 1);
}

void expect_lost(const std::function<void()>& ask) {
  try {
    ask();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kDeviceLost);
  }
}

TEST(RemoteMemory, WaitingThreadsThrowIfTheOwnerEndsByAnError) {
  RemoteMemory memory(std::make_unique<Script>());  // nothing ever arrives
  std::atomic<bool> owns{false}, fail{false};
  std::thread owner([&] {
    try {
      const RemoteMemory::Owner turn(&memory);
      owns = true;
      while (!fail) memory.progress();
      throw std::runtime_error("a stream has stopped");
    } catch (const std::runtime_error&) {
    }
  });
  while (!owns) std::this_thread::yield();
  std::thread waits([&] {
    std::array<std::byte, 8> data{};
    expect_lost([&] { memory.read(1, Bytes(0), data); });
  });
  fail = true;
  owner.join();
  waits.join();
  std::array<std::byte, 8> data{};
  expect_lost([&] { memory.read(1, Bytes(0), data); });
}

TEST(RemoteMemory, AnOwnerThatWaitsLooksAtTheCancelFlag) {
  std::atomic<bool> cancel{false};
  RemoteMemory memory(std::make_unique<Script>(), &cancel);
  std::thread aborts([&] { cancel = true; });
  std::array<std::byte, 8> data{};
  expect_lost([&] { memory.read(1, Bytes(0), data); });
  aborts.join();
}

TEST(RemoteMemory, ATrialThatIsNotAnsweredIsAnError) {
  RemoteMemory memory(std::make_unique<Script>());
  try {
    memory.try_out(1, Bytes(0), Bytes(64), std::chrono::seconds(0));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kMpi);
  }
}

// Rank 0's part: 1000 bytes on its own host, 3 pieces with rank 1, the rest with rank 2.
TEST(SpreadPool, ReadsTheBytesThatWereWrittenOnAnyHost) {
  const Bytes there(3 * kPiece + 17), total(1000 + there.value + 5000);
  const std::vector<Arena> segments = make_in_process_arenas(3, kMiB * 4);
  RemoteMemory memory(std::make_unique<LoopbackOneSided>(segments));
  SpreadPool pool(segments[0],
                  {{0, Bytes(0), Bytes(1000)}, {1, Bytes(300), there}, {2, Bytes(0), Bytes(5000)}}, memory);
  const Owner owner(memory);
  const auto all = bytes_of(static_cast<std::size_t>(total.value), 1);
  pool.write(Bytes(0), all);
  std::vector<std::byte> back(all.size());
  pool.read(Bytes(0), back);
  EXPECT_EQ(back, all);
  EXPECT_EQ(pool.high_water(), total);
  EXPECT_EQ(pool.elsewhere().written, total - Bytes(1000));
  EXPECT_EQ(pool.elsewhere().read, total - Bytes(1000));
  EXPECT_EQ(std::memcmp(segments[1].view(Bytes(300), there).data(), all.data() + 1000,
                        static_cast<std::size_t>(there.value)),
            0);
  std::vector<std::byte> across(900);
  pool.read(Bytes(500), across);
  EXPECT_EQ(across, std::vector(all.begin() + 500, all.begin() + 1400));
  EXPECT_THROW(pool.read(total - Bytes(1), std::span(across).first(2)), Error);
}

}  // namespace
}  // namespace hyperrun
