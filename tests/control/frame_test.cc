#include "runtime/control/frame.h"

#include <gtest/gtest.h>

#include <cstring>

#include "proto/control.pb.h"
#include "runtime/base/error.h"
#include "runtime/control/codec.h"

namespace hyperrun::control {
namespace {

void feed(FrameReader& reader, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto room = reader.prepare();
    const std::size_t n = std::min(room.size(), bytes.size());
    std::memcpy(room.data(), bytes.data(), n);
    reader.commit(n);
    bytes.remove_prefix(n);
  }
}

TEST(Frame, SurvivesAnyCutOfTheStream) {
  const tasks::LoadProgram program{3, "name", std::string(100000, 'p')};
  const tasks::Invocation invocation{4, 3, 9, {{"lr", 0.1}, {"seed", std::int64_t{-7}}}};
  std::string stream;
  append_frame(stream, encode(program), 1 << 20);
  append_frame(stream, encode(invocation), 1 << 20);
  for (const std::size_t cut : {1ul, 2ul, 3ul, 5ul, 4096ul, stream.size()}) {
    FrameReader reader(1 << 20);
    std::vector<pb::Message> messages;
    for (std::size_t at = 0; at < stream.size(); at += cut) {
      feed(reader, std::string_view(stream).substr(at, cut));
      while (const auto frame = reader.next())
        ASSERT_TRUE(messages.emplace_back().ParseFromString(std::string(*frame)));
    }
    ASSERT_EQ(messages.size(), 2u);
    EXPECT_EQ(decode(std::move(*messages[0].mutable_load_program())), program);
    EXPECT_EQ(decode(messages[1].invocation()), invocation);
  }
}

TEST(Frame, LengthIsLittleEndian) {
  std::string stream;
  append_frame(stream, encode(tasks::LoadProgram{1, "n", std::string(300, 'x')}), 1 << 20);
  EXPECT_EQ(static_cast<unsigned char>(stream[0]) + 256 * static_cast<unsigned char>(stream[1]),
            stream.size() - 4);
}

TEST(Frame, RefusesTooLongAndEmpty) {
  FrameReader reader(100);
  feed(reader, std::string("\x65\0\0\0", 4));
  EXPECT_THROW(reader.next(), Error);
  FrameReader other(100);
  feed(other, std::string(4, '\0'));
  EXPECT_THROW(other.next(), Error);
  std::string out;
  EXPECT_THROW(append_frame(out, encode(tasks::LoadProgram{1, "n", std::string(300, 'x')}), 100), Error);
}

TEST(Codec, ReportsAndErrorsComeBackAsTheyWere) {
  const tasks::InvocationDone done{
      5, {{"loss", 2.5}, {"nan", 0}}, std::string("\0\1", 2), std::string("\2\0", 2)};
  EXPECT_EQ(decode(std::move(*encode(done, 3).mutable_done())), done);
  const Error error = Error(Code::kDoesNotFit, "cause").at("place").legal("legal").fix("fix");
  EXPECT_STREQ(decode(encode(error, 3).failure()).what(), error.what());
}

}  // namespace
}  // namespace hyperrun::control
