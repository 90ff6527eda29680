// The arrows of the house, in one table: which room may include which. docs/design/architecture.md says what
// each room is for.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hyperrun {

struct Room {
  std::string_view folder;  // a file belongs to the longest folder that holds it
  int level;                // an arrow points to a lower level
  std::vector<std::string_view> sees;
};

// An arrow within a level, and why it does not make two rooms one.
struct SidewaysArrow {
  std::string_view from, to, reason;
};

// Headers of others, by how their name begins, and the rooms that may include them.
struct ForeignHeader {
  std::string_view prefix;
  std::vector<std::string_view> rooms;
};

// A room that has more lines than others may have, its limit, and what makes it large.
struct LargeRoom {
  std::string_view folder;
  int lines;
  std::string_view reason;
};

std::span<const Room> rooms();
std::span<const SidewaysArrow> sideways_arrows();
std::span<const ForeignHeader> foreign_headers();

// The most lines that a room's .h and .cc files may have together. Who must raise a limit asks first whether
// the room has become two.
int most_lines(std::string_view folder);

// Rooms whose files include no MPI, not even through others: they plan and predict where nothing runs.
std::span<const std::string_view> rooms_without_mpi();

// Rooms that may include generated protobuf headers. Nobody else's includes reach one, so only .cc files
// and headers that stay within the room can hold a message.
std::span<const std::string_view> rooms_with_protobuf();

// The folder of the room that holds `path`, or empty.
std::string_view room_of(std::string_view path);
const Room* find_room(std::string_view folder);

}  // namespace hyperrun
