#include "runtime/model/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tests/support/errors.h"
#include "tests/support/temporary_directory.h"

namespace hyperrun {
namespace {

std::span<const std::byte> bytes_of(const auto& values) { return std::as_bytes(std::span(values)); }

// A file of some other program: the length word, the header, the data.
std::string raw_file(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + header + data;
}

template <class T>
std::vector<T> values(const TensorView& view) {
  std::vector<T> out(view.data.size() / sizeof(T));
  std::memcpy(out.data(), view.data.data(), view.data.size());
  return out;
}

TEST(Safetensors, WrittenInPiecesOutOfOrderReadsBackEqual) {
  const TemporaryDirectory dir;
  const std::vector<TensorInfo> infos = {{"matrix", DType::kF32, {3, 4}},
                                         {"half", DType::kBF16, {3}},
                                         {"empty", DType::kF32, {0, 5}},
                                         {"scalar", DType::kI32, {}}};
  std::vector<float> matrix(12);
  std::iota(matrix.begin(), matrix.end(), 0.5f);
  const std::vector<std::uint16_t> half = {f32_to_bf16(1), f32_to_bf16(-2), f32_to_bf16(3)};
  const std::vector<std::int32_t> scalar = {-7};
  {
    SafetensorsWriter writer(dir / "m.safetensors", infos, {{"step", "12"}});
    writer.write(3, 0, bytes_of(scalar));
    writer.write(0, 20, bytes_of(matrix).subspan(20));
    writer.write(1, 0, bytes_of(half));
    writer.write(0, 0, bytes_of(matrix).first(20));
    EXPECT_FALSE(std::filesystem::exists(dir / "m.safetensors"));
    writer.commit();
  }
  const SafetensorsReader reader(dir / "m.safetensors");
  EXPECT_EQ(reader.tensors().size(), 4u);
  for (const TensorInfo& info : infos) EXPECT_EQ(reader.find(info.name)->info, info);
  EXPECT_EQ(values<float>(*reader.find("matrix")), matrix);
  EXPECT_EQ(values<std::uint16_t>(*reader.find("half")), half);
  EXPECT_EQ(values<std::int32_t>(*reader.find("scalar")), scalar);
  EXPECT_TRUE(reader.find("empty")->data.empty());
  EXPECT_EQ(reader.metadata(), (Metadata{{"format", "pt"}, {"step", "12"}}));
}

// The bytes of a file follow the description of the format.
TEST(Safetensors, BytesOnDisk) {
  const TemporaryDirectory dir;
  const std::vector<std::int32_t> data = {1, 2};
  SafetensorsWriter writer(dir / "f", {{"a", DType::kI32, {2}}});
  writer.write(0, 0, bytes_of(data));
  writer.commit();
  std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"I32","shape":[2],"data_offsets":[0,8]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::string expected = raw_file(header, std::string("\1\0\0\0\2\0\0\0", 8));
  EXPECT_EQ(read_file(dir / "f", Code::kBadCheckpoint), expected);
}

TEST(Safetensors, MissingBytesAreOurBug) {
  const TemporaryDirectory dir;
  SafetensorsWriter writer(dir / "f", {{"a", DType::kI32, {2}}});
  const std::vector<std::int32_t> data = {1, 2, 3};
  EXPECT_ERROR(writer.commit(), Code::kInternal, "", "(a)");
  EXPECT_ERROR(writer.write(0, 0, bytes_of(data)), Code::kInternal, "", "(a)");
  EXPECT_FALSE(std::filesystem::exists(dir / "f"));
}

TEST(Safetensors, ReadsForeignHeadersWithOddLengthAndOrder) {
  const TemporaryDirectory dir;
  put_file(dir / "f", raw_file(R"({"b":{"data_offsets":[4,8],"shape":[1],"dtype":"F32"},)"
                               R"("a":{"dtype":"I32","shape":[1,1],"data_offsets":[0,4]} })",
                               std::string("\3\0\0\0\0\0\x80\x3f", 8)));
  const SafetensorsReader reader(dir / "f");
  EXPECT_EQ(values<std::int32_t>(reader.get("a", std::vector<std::int64_t>{1, 1})), std::vector{3});
  EXPECT_EQ(values<float>(reader.get("b", std::vector<std::int64_t>{1})), std::vector{1.0f});
  EXPECT_ERROR(reader.get("c", {}), Code::kBadCheckpoint, "f: c", "missing");
  EXPECT_ERROR(reader.get("a", std::vector<std::int64_t>{2}), Code::kBadCheckpoint, "f: a", "[1, 1]");
}

struct BadFile {
  const char *header, *place, *cause;
};

TEST(Safetensors, EachWrongHeaderIsNamed) {
  const BadFile kFiles[] = {
      {R"(nonsense)", "f", "not valid JSON"},
      {R"([])", "f", "must be a JSON object"},
      {R"({})", "f", "belong to none"},
      {R"({"a":3})", "f: a", "must be a JSON object"},
      {R"({"a":{"shape":[2],"data_offsets":[0,8]}})", "f: a: dtype", "missing"},
      {R"({"a":{"dtype":"F128","shape":[4],"data_offsets":[0,8]}})", "f: a: dtype", "F128"},
      {R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", "f: a: shape", "missing"},
      {R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})", "f: a: shape", "list of sizes"},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "f: a: shape", "-2"},
      {R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", "f: a: shape", "2.0"},
      {R"({"a":{"dtype":"F32","shape":[0,9223372036854775807,8],"data_offsets":[0,8]}})", "shape",
       "too large"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", "f: a: data_offsets", "[begin, end]"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "f: a: data_offsets", "begin <= end"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "f: a: data_offsets", "need 12"},
      {R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", "f: a", "truncated"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "f: a", "gap"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "f", "4 bytes after"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],)"
       R"("data_offsets":[4,8]}})",
       "f", "overlaps"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],)"
       R"("data_offsets":[0,8]}})",
       "f", "\"a\" occurs twice"},
      {R"({"__metadata__":3,"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "__metadata__",
       "object"},
      {R"({"__metadata__":{"x":1},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "__metadata__",
       "strings"},
  };
  const TemporaryDirectory dir;
  for (const BadFile& bad : kFiles) {
    SCOPED_TRACE(bad.header);
    put_file(dir / "f", raw_file(bad.header, std::string(8, 'x')));
    EXPECT_ERROR(SafetensorsReader(dir / "f"), Code::kBadCheckpoint, bad.place, bad.cause);
  }
}

TEST(Safetensors, NoFile) {
  const TemporaryDirectory dir;
  EXPECT_ERROR(SafetensorsReader(dir / "absent"), Code::kMissingFile, "absent", "no such");
  EXPECT_ERROR(SafetensorsReader(dir.path()), Code::kMissingFile, dir.path().string(), "neither");
  put_file(dir / "empty", "");
  EXPECT_ERROR(SafetensorsReader(dir / "empty"), Code::kBadCheckpoint, "empty", "truncated");
}

class Shards : public ::testing::Test {
 protected:
  void write_shard(const std::string& file, const std::string& tensor, std::int32_t value) {
    const std::vector<std::int32_t> data = {value};
    SafetensorsWriter writer(dir_ / file, {{tensor, DType::kI32, {1}}});
    writer.write(0, 0, bytes_of(data));
    writer.commit();
  }
  void write_index(const std::string& map) {
    put_file(dir_ / "model.safetensors.index.json",
             R"({"metadata":{"total_size":8},"weight_map":)" + map + "}");
  }
  TemporaryDirectory dir_;
};

TEST_F(Shards, AreReadThroughTheIndex) {
  write_shard("model-1.safetensors", "a", 1);
  write_shard("model-2.safetensors", "b", 2);
  write_index(R"({"a":"model-1.safetensors","b":"model-2.safetensors"})");
  const SafetensorsReader reader(dir_.path());
  EXPECT_EQ(values<std::int32_t>(*reader.find("a")), std::vector{1});
  EXPECT_EQ(values<std::int32_t>(*reader.find("b")), std::vector{2});
}

TEST_F(Shards, WrongIndicesAreNamed) {
  write_shard("model-1.safetensors", "a", 1);
  write_shard("model-2.safetensors", "a", 2);
  const auto read = [&](const std::string& map) {
    write_index(map);
    const SafetensorsReader reader(dir_.path());
  };
  EXPECT_ERROR(read("3"), Code::kBadCheckpoint, "weight_map", "object");
  EXPECT_ERROR(read(R"({"a":3})"), Code::kBadCheckpoint, "weight_map", "shard of a");
  EXPECT_ERROR(read(R"({"a":"../x"})"), Code::kBadCheckpoint, "weight_map", "shard of a");
  EXPECT_ERROR(read(R"({"a":".."})"), Code::kBadCheckpoint, "..", "not a regular file");
  EXPECT_ERROR(read(R"({"a":"model-3.safetensors"})"), Code::kMissingFile, "index.json", "model-3");
  EXPECT_ERROR(read(R"({"b":"model-1.safetensors"})"), Code::kBadCheckpoint, "index.json: b", "lacks it");
  EXPECT_ERROR(read(R"({"a":"model-1.safetensors","b":"model-2.safetensors"})"), Code::kBadCheckpoint,
               "model-2.safetensors: a", "another shard");
}

}  // namespace
}  // namespace hyperrun
