// What a pass of generation is told: for each of its sequences the tokens that it brings, and a row of i32
//
//   id, start, count, page 0, page 1, ...
//
// `start` positions are in the cache already, `count` tokens are new (0: nobody is there). Position p lies in
// page p / (positions of a page) of the list, whose numbers count the pages of the device, or of all devices
// that hold the same part of the batch. Randomness is by `id` and position: a sequence grows alike in any
// company.
#pragma once

#include <cstdint>
#include <vector>

namespace hyperrun {

inline constexpr std::int64_t kRequestId = 0, kRequestStart = 1, kRequestCount = 2, kRequestPages = 3;

struct Requests {
  std::int64_t tokens = 0, width = 0;   // of a sequence: columns of ids, and of a row
  std::vector<std::int32_t> ids, rows;  // of all sequences of the pass
  bool operator==(const Requests&) const = default;
};

// The passes of a generation: "prefill" takes `chunk` tokens of each of `prompts` sequences, of all groups as
// many, "decode" one token of each slot. A group is a part of the batch; its sequences share its pages.
struct GenerationShape {
  std::int64_t groups = 1;
  std::int64_t slots = 1;    // of all groups
  std::int64_t prompts = 1;  // likewise; divides the slots
  std::int64_t chunk = 1, context = 1;
  std::int64_t page = 1, pages = 1;  // positions of a page; pages of a group
  std::int64_t parts = 1;            // of a page, each on another device
  std::int64_t width() const { return kRequestPages + (context + page - 1) / page; }  // of a row
  bool operator==(const GenerationShape&) const = default;
};

}  // namespace hyperrun
