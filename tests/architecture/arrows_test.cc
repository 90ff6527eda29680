// Arrows point down only (docs/design/architecture.md): by what our files include and by what our libraries
// link.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/architecture/rooms.h"
#include "tests/architecture/source_tree.h"

namespace hyperrun {
namespace {

const SourceTree& tree() {
  static const SourceTree tree(HYPERRUN_SOURCE_DIR);
  return tree;
}

bool contains(const auto& list, std::string_view value) {
  return std::ranges::find(list, value) != list.end();
}

std::string place(const SourceFile& file, const Include& include) {
  return file.path + ":" + std::to_string(include.line) + ": ";
}

// Our code outside tests and benchmarks, which may see everything.
std::vector<const SourceFile*> production_code() {
  std::vector<const SourceFile*> found;
  for (const auto& [path, file] : tree().files())
    if (is_code(file) && !path.starts_with("tests/") && !path.starts_with("bench/")) found.push_back(&file);
  return found;
}

TEST(Table, PointsDownAndNamesEachSidewaysArrow) {
  for (const Room& room : rooms())
    for (const std::string_view seen : room.sees) {
      const Room* other = find_room(seen);
      ASSERT_NE(other, nullptr) << room.folder << " sees " << seen << ", which is no room";
      EXPECT_LE(other->level, room.level) << room.folder << " -> " << seen << " points up";
      if (other->level == room.level) {
        EXPECT_TRUE(std::ranges::any_of(
            sideways_arrows(),
            [&](const auto& arrow) { return arrow.from == room.folder && arrow.to == seen; }))
            << room.folder << " -> " << seen << " points sideways without a reason";
      }
    }
}

TEST(Table, EveryFileLivesInARoom) {
  EXPECT_GT(production_code().size(), 100u);
  for (const SourceFile* file : production_code())
    EXPECT_NE(room_of(file->path), "")
        << file->path << ": give its folder a row in tests/architecture/rooms.cc";
}

TEST(Table, RoomsStayOfAReadableSize) {
  std::map<std::string_view, std::int64_t> lines;
  for (const SourceFile* file : production_code())
    lines[room_of(file->path)] += std::ranges::count(file->text, '\n');
  for (const auto& [room, count] : lines)
    EXPECT_LE(count, most_lines(room))
        << room << ": cut the room in two, or raise its limit in tests/architecture/rooms.cc";
}

TEST(Arrows, IncludesFollowTheTable) {
  for (const SourceFile* file : production_code()) {
    const std::string_view from = room_of(file->path);
    const Room* room = find_room(from);
    if (room == nullptr) continue;  // EveryFileLivesInARoom says so
    for (const Include& include : file->includes) {
      const std::string_view to = room_of(include.name);
      if (to.empty() || to == from) continue;
      EXPECT_TRUE(contains(room->sees, to)) << place(*file, include) << from << " must not see " << to;
    }
  }
}

TEST(Arrows, IncludesOfOursAreWrittenFromTheRoot) {
  for (const auto& [path, file] : tree().files())
    for (const Include& include : file.includes) {
      const std::string beside = path.substr(0, path.rfind('/') + 1) + include.name;
      EXPECT_FALSE(include.quoted && tree().files().contains(beside) &&
                   !tree().files().contains(include.name))
          << place(file, include) << "write \"" << beside << '"';
    }
}

TEST(Arrows, NobodySeesTestsOrBenchmarks) {
  for (const SourceFile* file : production_code())
    for (const Include& include : file->includes)
      EXPECT_FALSE(include.name.starts_with("tests/") || include.name.starts_with("bench/"))
          << place(*file, include);
}

TEST(Arrows, ForeignHeadersStayInTheirRooms) {
  for (const SourceFile* file : production_code())
    for (const Include& include : file->includes)
      for (const ForeignHeader& foreign : foreign_headers())
        if (include.name.starts_with(foreign.prefix)) {
          EXPECT_TRUE(contains(foreign.rooms, room_of(file->path)))
              << place(*file, include) << room_of(file->path) << " must not see " << foreign.prefix;
        }
}

TEST(Arrows, ProtobufStaysAtTheEdge) {
  for (const SourceFile* file : production_code()) {
    if (contains(rooms_with_protobuf(), room_of(file->path))) continue;
    for (const Include& include : file->includes) {
      std::set<std::string> reached = tree().reached_from(include.name);
      reached.insert(include.name);
      for (const std::string& name : reached)
        EXPECT_FALSE(name.ends_with(".pb.h") || name.starts_with("google/protobuf/"))
            << place(*file, include) << "brings " << name;
    }
  }
}

TEST(Arrows, PlanningIncludesNoMpi) {
  for (const SourceFile* file : production_code())
    if (contains(rooms_without_mpi(), room_of(file->path))) {
      EXPECT_FALSE(tree().reached_from(file->path).contains("mpi.h")) << file->path << " reaches mpi.h";
    }
}

// links.txt holds, for each library that plans, a line "target: all that it links", written by CMake.
TEST(Arrows, PlanningLinksNoMpi) {
  std::ifstream links(HYPERRUN_LINKS);
  int seen = 0;
  for (std::string line; std::getline(links, line); ++seen) {
    EXPECT_NE(line.find(" base "), std::string::npos) << "does not name what it links: " << line;
    EXPECT_EQ(line.find("MPI::"), std::string::npos) << line;
    EXPECT_EQ(line.find("libmpi"), std::string::npos) << line;
  }
  EXPECT_EQ(seen, HYPERRUN_LINKS_LINES);
}

}  // namespace
}  // namespace hyperrun
