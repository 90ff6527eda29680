// The target reads what arrives on a connection: frames, in pieces of any length, and the messages in them,
// of both directions.
#include <algorithm>
#include <cstring>

#include "runtime/control/codec.h"
#include "runtime/control/frame.h"
#include "tests/fuzz/fuzz.h"

using namespace hyperrun;
using namespace hyperrun::control;

namespace {

constexpr std::size_t kMaxFrame = 4096;

void decode_body(pb::Message&& message) {
  switch (message.body_case()) {
    case pb::Message::kLoadProgram: encode(decode(std::move(*message.mutable_load_program()))); break;
    case pb::Message::kInvocation: encode(decode(message.invocation())); break;
    case pb::Message::kDone: encode(decode(std::move(*message.mutable_done())), 0); break;
    case pb::Message::kFailure: encode(decode(message.failure()), 0); break;
    case pb::Message::kHello: {
      pb::Identity identity;
      identity.ParseFromString(message.hello().identity());
      break;
    }
    default: break;
  }
}

}  // namespace

// The first byte says in pieces of which length the others arrive.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = std::size_t{data[0]} * 16 + 1;
  std::string_view rest = fuzz::text_of(data + 1, size - 1);
  fuzz::take_or_refuse([&] {
    FrameReader reader(kMaxFrame);
    while (!rest.empty()) {
      const std::span<char> room = reader.prepare();
      const std::size_t bytes = std::min({piece, rest.size(), room.size()});
      std::memcpy(room.data(), rest.data(), bytes);
      reader.commit(bytes);
      rest.remove_prefix(bytes);
      while (const auto frame = reader.next()) {
        pb::Message message;
        if (!message.ParseFromArray(frame->data(), static_cast<int>(frame->size()))) continue;
        decode_body(std::move(message));
      }
    }
  });
  return 0;
}
