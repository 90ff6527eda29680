// The target reads the contents of messages: plans, sessions, and statistics of devices.
#include "runtime/spec/plan_io.h"
#include "runtime/spec/session_io.h"
#include "runtime/spec/stats_io.h"
#include "tests/fuzz/fuzz.h"

using namespace hyperrun;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  fuzz::take_or_refuse_at([&] { plan_from_bytes(bytes, "/plan"); });
  fuzz::take_or_refuse_at([&] { sessions_from_bytes(bytes, "/sessions"); });
  fuzz::take_or_refuse_at([&] { stats_from_bytes(bytes, "/stats"); });
  return 0;
}
