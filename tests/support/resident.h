// Asks the kernel which pages have memory behind them.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hyperrun::testing {

inline std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

// For each page that [base, base + bytes) touches, in order, whether it is resident. Empty if the kernel does
// not say.
inline std::vector<bool> resident_pages(const std::byte* base, std::size_t bytes) {
  const std::size_t into_page = reinterpret_cast<std::uintptr_t>(base) % page_bytes();
  std::vector<unsigned char> state((into_page + bytes + page_bytes() - 1) / page_bytes());
  auto* begin = const_cast<std::byte*>(base - into_page);
  if (mincore(begin, into_page + bytes, state.data()) != 0) return {};
  std::vector<bool> resident;
  for (const unsigned char s : state) resident.push_back((s & 1) != 0);
  return resident;
}

}  // namespace hyperrun::testing
