#include "memory/arena.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "runtime/base/error.h"

namespace hyperrun {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

void fault_by_hand(std::byte* base, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (std::size_t i = 0; i < bytes; i += page) {
    auto* p = reinterpret_cast<volatile std::byte*>(base + i);
    *p = *p;
  }
}

void fault(std::byte* base, std::size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  if (madvise(base, bytes, MADV_POPULATE_WRITE) == 0) return;
#endif
  fault_by_hand(base, bytes);
}

}  // namespace

Arena::Arena(Bytes budget, int rank, std::vector<std::byte*> slabs, std::shared_ptr<void> owner)
    : budget_(budget),
      rank_(rank),
      base_(slabs.at(static_cast<std::size_t>(rank))),
      slabs_(std::move(slabs)),
      owner_(std::move(owner)) {
  HR_CHECK(base_ != nullptr && budget.value >= 0);
}

std::span<std::byte> Arena::view(Bytes offset, Bytes bytes) const {
  HR_CHECK(offset.value >= 0 && bytes.value >= 0 && bytes <= budget_ && offset <= budget_ - bytes,
           fmt::format("offset {} + {} of {} bytes", offset.value, bytes.value, budget_.value));
  return {base_ + offset.value, static_cast<std::size_t>(bytes.value)};
}

bool Arena::contains(const void* p, Bytes bytes) const {
  const auto* b = static_cast<const std::byte*>(p);
  return b >= base_ && bytes.value >= 0 && b <= base_ + budget_.value &&
         bytes.value <= base_ + budget_.value - b;
}

Bytes Arena::offset_of(const void* p) const { return Bytes(static_cast<const std::byte*>(p) - base_); }

void Arena::touch(Bytes offset, Bytes bytes) {
  HR_CHECK(bytes.value >= 0 && offset.value >= 0 && bytes <= budget_ && offset <= budget_ - bytes);
  high_water_ = std::max(high_water_, offset + bytes);
}

void prefault(std::byte* base, Bytes bytes, int threads) {
  if (bytes.value == 0) return;
  const auto into_page =
      reinterpret_cast<std::uintptr_t>(base) % static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  std::byte* const begin = base - into_page;
  const auto length = static_cast<std::size_t>(bytes.value) + into_page;
  // Each thread gets whole huge pages, so that no two threads fault in the same one.
  const std::size_t part = round_up(
      (length + static_cast<std::size_t>(threads) - 1) / static_cast<std::size_t>(threads), kHugePage);
  std::vector<std::jthread> others;
  for (std::size_t from = part; from < length; from += part)
    others.emplace_back([=] { fault(begin + from, std::min(part, length - from)); });
  fault(begin, std::min(part, length));
}

std::vector<Arena> make_in_process_arenas(int ranks, Bytes budget) {
  return make_in_process_arenas(ranks, budget, budget);
}

std::shared_ptr<std::byte> map_memory(Bytes bytes) {
  const auto total = static_cast<std::size_t>(bytes.value);
  void* map =
      mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED)
    throw Error(Code::kDoesNotFit,
                fmt::format("cannot map {} of HBM: {}", to_string(bytes), std::strerror(errno)))
        .fix("lower supernode.hbm or the number of devices");
  return {static_cast<std::byte*>(map), [total](std::byte* p) { munmap(p, total); }};
}

std::vector<Arena> make_in_process_arenas(int ranks, Bytes budget, Bytes prefaulted) {
  const std::size_t stride = std::max(round_up(static_cast<std::size_t>(budget.value), kHugePage), kHugePage);
  const std::size_t total = stride * static_cast<std::size_t>(ranks) + kHugePage;
  const std::shared_ptr<std::byte> owner = map_memory(Bytes(static_cast<std::int64_t>(total)));
  const auto at = reinterpret_cast<std::uintptr_t>(owner.get());
  std::byte* first = owner.get() + (round_up(at, kHugePage) - at);
  madvise(first, stride * static_cast<std::size_t>(ranks), MADV_HUGEPAGE);
  std::vector<std::byte*> slabs;
  slabs.reserve(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) slabs.push_back(first + stride * static_cast<std::size_t>(r));
  std::vector<Arena> arenas;
  for (int r = 0; r < ranks; ++r) {
    prefault(slabs[static_cast<std::size_t>(r)], std::min(budget, prefaulted));
    arenas.emplace_back(budget, r, slabs, owner);
  }
  return arenas;
}

}  // namespace hyperrun
