// The message transport runs one collective at a time by messages and never blocks. Blocks travel in pieces:
// strided ones are packed, and received ones reduced, in a small staging buffer. Contiguous pieces go
// straight from and to the tensors.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "collectives/message_port.h"
#include "collectives/message_schedule.h"

namespace hyperrun {

class MessageTransport {
 public:
  // `ranks` are ranks of the world in the order of the group, `me` is this rank's index. All members use
  // staging of the same size, at least 64 bytes for each of 8 and of 2 * ranks. With `checksums`, which all
  // members have or none, each piece is followed by its checksum.
  MessageTransport(MessagePort& port, std::vector<int> ranks, int me, int tag, std::span<std::byte> staging,
                   bool checksums);

  void begin(Algorithm algorithm, const CollectiveArgs& args);
  bool advance();                              // true once complete
  std::int64_t sent() const { return sent_; }  // bytes of the collective begun last

 private:
  static constexpr int kWindow = 2;  // pieces under way in each direction

  struct Direction {
    int pieces = 0, posted = 0, done = 0;
    std::array<MessagePort::Ticket, kWindow> tickets{};
    std::array<bool, kWindow> arrived{};
    std::array<MessagePort::Ticket, kWindow> sum_tickets{};
    std::array<bool, kWindow> sum_arrived{};
    std::array<std::uint64_t, kWindow> sums{};
    std::array<std::byte*, kWindow> staging{};
  };

  void load_step();
  int pieces_of(const Transfer& t) const;
  std::int64_t piece_bytes(const Transfer& t, int piece) const;
  bool in_place(const Transfer& t) const;
  bool has_sum(std::int64_t bytes) const { return checksums_ && bytes > 0; }
  bool complete(Direction& d, std::int64_t bytes);
  std::byte* landing(int piece) const;
  void check(int piece) const;
  void post_send();
  void post_receive();
  void advance_sends();
  void advance_receives();
  void accept(int piece);
  void combine(std::int64_t offset, const std::byte* received, std::int64_t bytes);
  void reduce_all();

  MessagePort& port_;
  std::vector<int> ranks_;
  int me_, tag_;
  bool checksums_;
  std::int64_t piece_ = 0, slot_bytes_ = 0;
  std::byte* slots_ = nullptr;
  MessageSchedule schedule_;
  CollectiveArgs args_;
  Step step_;
  int next_step_ = 0;
  bool loaded_ = false;
  Direction out_, in_;
  std::int64_t sent_ = 0;
  std::vector<const std::byte*> sources_;
};

}  // namespace hyperrun
