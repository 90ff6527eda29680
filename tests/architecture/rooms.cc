#include "tests/architecture/rooms.h"

#include <algorithm>
#include <array>

namespace hyperrun {
namespace {

const std::vector<Room> kRooms = {
    {"proto", 0, {}},
    {"runtime/base", 0, {}},

    {"memory", 1, {"runtime/base"}},
    {"collectives", 1, {"runtime/base", "memory"}},
    {"runtime/ir", 1, {"runtime/base", "collectives"}},
    {"runtime/device/kernels", 1, {"runtime/base"}},
    {"runtime/fit", 1, {"runtime/base"}},
    {"runtime/faults", 1, {"runtime/base"}},
    {"runtime/process", 1, {"runtime/base"}},
    {"runtime/tasks", 1, {"runtime/base"}},

    {"runtime/device/footprint", 2, {"runtime/base", "runtime/ir", "runtime/device/kernels"}},
    {"runtime/cost", 2, {"runtime/base", "runtime/ir", "memory", "collectives"}},
    {"runtime/offload", 2, {"runtime/base", "runtime/ir", "memory", "runtime/cost"}},
    {"runtime/mpmd", 2, {"runtime/base", "runtime/ir", "runtime/cost"}},
    {"runtime/inference", 2, {"runtime/base", "runtime/ir"}},
    {"runtime/spec",
     2,
     {"runtime/base", "runtime/ir", "proto", "runtime/faults", "runtime/model/checkpoint"}},
    {"runtime/report", 2, {"runtime/base", "runtime/ir", "proto"}},
    {"runtime/model/graph", 2, {"runtime/base", "runtime/ir"}},
    {"runtime/model/checkpoint", 2, {"runtime/base", "runtime/ir"}},
    {"runtime/model/text", 2, {"runtime/base", "runtime/ir", "runtime/model/checkpoint"}},
    {"runtime/shard", 2, {"runtime/base", "runtime/ir"}},

    {"runtime/compile",
     3,
     {"runtime/base", "runtime/ir", "memory", "runtime/device/footprint", "runtime/model/graph",
      "runtime/shard", "runtime/cost", "runtime/offload", "runtime/mpmd"}},
    {"runtime/compose",
     4,
     {"runtime/base", "runtime/ir", "memory", "runtime/model/graph", "runtime/shard", "runtime/compile"}},
    {"runtime/device",
     3,
     {"runtime/base", "runtime/ir", "memory", "collectives", "runtime/device/kernels",
      "runtime/model/checkpoint", "runtime/model/text"}},
    {"runtime/sim", 3, {"runtime/base", "runtime/ir", "memory", "collectives", "runtime/cost"}},

    {"runtime/report/faults", 3, {"runtime/base", "runtime/faults", "runtime/report"}},
    {"runtime/media", 3, {"runtime/base", "runtime/report", "runtime/model/checkpoint"}},
    {"runtime/reinforce", 3, {"runtime/base", "runtime/ir", "runtime/report", "runtime/model/checkpoint"}},

    {"runtime/calibrate",
     4,
     {"runtime/base", "runtime/device/footprint", "runtime/ir", "memory", "collectives", "runtime/fit",
      "runtime/compile", "runtime/device", "runtime/sim", "runtime/cost"}},
    {"runtime/validate",
     4,
     {"runtime/base", "runtime/ir", "memory", "runtime/fit", "runtime/report", "runtime/compile",
      "runtime/sim", "runtime/cost"}},
    {"runtime/frameworks/shell", 1, {"runtime/base"}},
    {"runtime/frameworks",
     3,
     {"runtime/base", "runtime/ir", "runtime/frameworks/shell", "runtime/model/checkpoint", "runtime/spec"}},
    {"runtime/verify",
     4,
     {"runtime/base", "runtime/ir", "memory", "collectives", "runtime/spec", "runtime/report",
      "runtime/model/checkpoint", "runtime/model/text", "runtime/shard", "runtime/compile",
      "runtime/device"}},
    {"runtime/plan",
     4,
     {"runtime/base", "runtime/device/footprint", "runtime/ir", "memory", "runtime/compile", "runtime/sim",
      "runtime/cost"}},
    {"runtime/control", 4, {"runtime/base", "proto", "runtime/process", "runtime/tasks"}},

    {"runtime/advise",
     4,
     {"runtime/base", "runtime/ir", "memory", "runtime/spec", "runtime/shard", "runtime/compile",
      "runtime/cost", "runtime/sim"}},

    {"runtime/report/plan",
     5,
     {"runtime/base", "runtime/ir", "runtime/report", "runtime/advise", "runtime/plan", "runtime/verify"}},

    {"runtime/omni",
     5,
     {"runtime/base", "runtime/ir", "memory", "runtime/compile", "runtime/compose", "runtime/cost",
      "runtime/sim", "runtime/tasks", "runtime/media", "runtime/model/text"}},

    {"runtime/rank",
     5,
     {"runtime/base", "runtime/ir", "memory", "collectives", "runtime/device/kernels", "runtime/spec",
      "runtime/report", "runtime/model/checkpoint", "runtime/model/text", "runtime/device", "runtime/sim",
      "runtime/process", "runtime/tasks", "runtime/control", "runtime/cost", "runtime/inference"}},

    {"runtime/run", 6, {"runtime/base",        "runtime/faults",
                        "runtime/ir",          "memory",
                        "collectives",         "runtime/device/kernels",
                        "runtime/spec",        "runtime/report",
                        "runtime/report/plan", "runtime/media",
                        "runtime/reinforce",   "runtime/model/checkpoint",
                        "runtime/model/text",  "runtime/compile",
                        "runtime/compose",     "runtime/device",
                        "runtime/sim",         "runtime/plan",
                        "runtime/advise",      "runtime/process",
                        "runtime/tasks",       "runtime/control",
                        "runtime/cost",        "runtime/inference",
                        "runtime/omni",        "runtime/rank"}},

    {"runtime/generate",
     7,
     {"runtime/base",       "runtime/ir",        "memory",          "collectives",
      "runtime/spec",       "runtime/report",    "runtime/advise",  "runtime/model/checkpoint",
      "runtime/model/text", "runtime/compile",   "runtime/compose", "runtime/device",
      "runtime/sim",        "runtime/cost",      "runtime/process", "runtime/tasks",
      "runtime/control",    "runtime/inference", "runtime/rank",    "runtime/run"}},

    {"runtime/forecast", 7, {"runtime/base",
                             "collectives",
                             "runtime/verify",
                             "runtime/ir",
                             "memory",
                             "runtime/faults",
                             "runtime/report/faults",
                             "runtime/spec",
                             "runtime/report",
                             "runtime/reinforce",
                             "runtime/model/text",
                             "runtime/media",
                             "runtime/compile",
                             "runtime/compose",
                             "runtime/device",
                             "runtime/sim",
                             "runtime/advise",
                             "runtime/tasks",
                             "runtime/control",
                             "runtime/cost",
                             "runtime/inference",
                             "runtime/omni",
                             "runtime/rank",
                             "runtime/run"}},

    {"launcher",
     8,
     {"runtime/base",
      "runtime/ir",
      "memory",
      "collectives",
      "runtime/device/kernels",
      "runtime/spec",
      "runtime/report",
      "runtime/report/plan",
      "runtime/media",
      "runtime/model/checkpoint",
      "runtime/model/text",
      "runtime/compile",
      "runtime/compose",
      "runtime/device",
      "runtime/sim",
      "runtime/calibrate",
      "runtime/validate",
      "runtime/verify",
      "runtime/frameworks",
      "runtime/plan",
      "runtime/advise",
      "runtime/process",
      "runtime/cost",
      "runtime/rank",
      "runtime/run",
      "runtime/generate",
      "runtime/forecast"}},
};

const std::array kSideways = {
    SidewaysArrow{"collectives", "memory", "peers' HBM is read in place, so groups are made over arenas"},
    SidewaysArrow{"runtime/ir", "collectives", "an instruction describes its collective as the library does"},
    SidewaysArrow{"runtime/offload", "runtime/cost", "a transfer is planned by what instructions take"},
    SidewaysArrow{"runtime/mpmd", "runtime/cost", "streams are filled by what instructions take"},
    SidewaysArrow{"runtime/model/text", "runtime/model/checkpoint",
                  "a tokenizer is one of a checkpoint's files"},
    SidewaysArrow{"runtime/spec", "runtime/model/checkpoint",
                  "a job's model may be a checkpoint's config.json"},
};

const std::vector<ForeignHeader> kForeign = {
    {"mpi.h", {"memory", "collectives", "runtime/rank", "runtime/run", "launcher"}},
    {"google/protobuf/", {"runtime/spec", "runtime/report", "runtime/control"}},
    {"boost/", {"runtime/control", "runtime/device"}},
    {"openssl/", {"runtime/control"}},
    {"spdlog/", {"runtime/base", "runtime/control"}},
    {"nlohmann/", {"runtime/model/checkpoint", "runtime/report", "runtime/validate"}},
    {"CLI/", {"launcher"}},
    {"png.h", {"runtime/media"}},
    {"sndfile.h", {"runtime/media"}},
    {"kiss_fft", {"runtime/media"}},
    {"pcre2.h", {"runtime/model/text"}},
    {"utf8proc.h", {"runtime/model/text"}},
    {"yaml-cpp/", {"runtime/frameworks"}},
    {"toml++/", {"runtime/frameworks"}},
    {"cblas.h", {"runtime/device/kernels"}},
    {"hwy/", {"runtime/device/kernels", "collectives"}},
};

constexpr int kMostLines = 3300;
constexpr std::array kLargeRooms = {
    LargeRoom{"runtime/plan", 9500,
              "two bounds and six ways to choose what is simulated; about half would do"},
    LargeRoom{"collectives", 3600, "two transports, the schedules of messages, and checksums of both"},
    LargeRoom{"runtime/frameworks", 7000, "tables of the settings of eight frameworks, and their meaning"},
    LargeRoom{"runtime/spec", 6600, "a field of a job is read, checked and written"},
    LargeRoom{"runtime/compile", 5600, "passes, and the memory plan of all roles"},
    LargeRoom{"runtime/device", 4500, "the executor, and the state to and from files"},
    LargeRoom{"runtime/run", 6800, "kinds of runs, their drivers and recorders"},
    LargeRoom{"runtime/device/kernels", 4800, "a file pair a kernel"},
    LargeRoom{"runtime/model/text", 5400, "a small class for each type of step of a tokenizer.json"},
    LargeRoom{"runtime/report", 4700, "files, texts and three charts"},
    LargeRoom{"launcher", 2500, "smaller than other rooms: the command line and nothing else"},
    LargeRoom{"runtime/ir", 5600, "two tables of 65 operators"},
};

constexpr std::array<std::string_view, 9> kWithoutMpi = {
    "runtime/ir",  "runtime/spec",    "runtime/report", "runtime/shard", "runtime/compile",
    "runtime/sim", "runtime/offload", "runtime/mpmd",   "runtime/cost"};
constexpr std::array<std::string_view, 3> kWithProtobuf = {"runtime/spec", "runtime/report",
                                                           "runtime/control"};

}  // namespace

std::span<const Room> rooms() { return kRooms; }
std::span<const SidewaysArrow> sideways_arrows() { return kSideways; }
std::span<const ForeignHeader> foreign_headers() { return kForeign; }
int most_lines(std::string_view folder) {
  const auto large = std::ranges::find(kLargeRooms, folder, &LargeRoom::folder);
  return large == kLargeRooms.end() ? kMostLines : large->lines;
}
std::span<const std::string_view> rooms_without_mpi() { return kWithoutMpi; }
std::span<const std::string_view> rooms_with_protobuf() { return kWithProtobuf; }

std::string_view room_of(std::string_view path) {
  std::string_view best;
  for (const Room& room : kRooms)
    if (path.starts_with(room.folder) && path.substr(room.folder.size()).starts_with('/') &&
        room.folder.size() > best.size())
      best = room.folder;
  return best;
}

const Room* find_room(std::string_view folder) {
  const auto at = std::ranges::find(kRooms, folder, &Room::folder);
  return at == kRooms.end() ? nullptr : &*at;
}

}  // namespace hyperrun
