// The input of a generation's pass: for each sequence its new tokens, and a row of i32
//
//   id, start, count, page 0, page 1, ...
//
// `start` positions are in the cache already, `count` tokens are new (0: the slot is empty). Position p is in
// entry p / (positions of a page) of the list of pages. Page numbers count the pages of one device, or of all
// devices that hold the same part of the batch. Random numbers depend on `id` and position only, so a
// sequence grows alike whatever other sequences are in the pass.
#pragma once

#include <cstdint>
#include <vector>

namespace hyperrun {

inline constexpr std::int64_t kRequestId = 0, kRequestStart = 1, kRequestCount = 2, kRequestPages = 3;

struct Requests {
  std::int64_t tokens = 0;              // columns of `ids`
  std::int64_t width = 0;               // columns of `rows`
  std::vector<std::int32_t> ids, rows;  // one row for each sequence of the pass
  bool operator==(const Requests&) const = default;
};

// The shape of a generation's passes. "prefill" takes `chunk` tokens of each of `prompts` sequences, equally
// many of each group; "decode" takes one token of each slot. A group is a part of the batch; its sequences
// share its pages.
struct GenerationShape {
  std::int64_t groups = 1;
  std::int64_t slots = 1;    // slots of all groups
  std::int64_t prompts = 1;  // prompts of all groups; divides the slots
  std::int64_t chunk = 1, context = 1;
  std::int64_t page = 1;   // positions of a page
  std::int64_t pages = 1;  // pages of a group
  std::int64_t parts = 1;  // parts of a page, each on another device
  std::int64_t width() const { return kRequestPages + (context + page - 1) / page; }  // numbers of a row
  bool operator==(const GenerationShape&) const = default;
};

}  // namespace hyperrun
