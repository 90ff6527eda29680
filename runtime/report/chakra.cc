#include "runtime/report/chakra.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>

#include "proto/chakra.pb.h"
#include "runtime/base/joined.h"
#include "runtime/report/file.h"

namespace hyperrun {
namespace {

constexpr std::int64_t kNanosPerMicro = 1000;

// Rounds up: readers take a duration of 0 for none.
std::uint64_t micros(Nanos t) {
  return static_cast<std::uint64_t>((t.value + kNanosPerMicro - 1) / kNanosPerMicro);
}

proto::chakra::Attribute& attribute(proto::chakra::Node& node, const char* name) {
  auto& a = *node.add_attr();
  a.set_name(name);
  return a;
}

}  // namespace

struct ChakraWriter::Impl {
  explicit Impl(const std::filesystem::path& path)
      : file(path, O_WRONLY | O_CREAT | O_TRUNC), stream(file.fd(), 1 << 16) {}

  void write(const google::protobuf::Message& message) {
    google::protobuf::io::CodedOutputStream out(&stream);
    out.WriteVarint32(static_cast<std::uint32_t>(message.ByteSizeLong()));
    message.SerializeWithCachedSizes(&out);
    if (out.HadError()) throw unwritable(file.path(), "write the trace", stream.GetErrno());
  }

  OutputFile file;
  google::protobuf::io::FileOutputStream stream;
  proto::chakra::Node node;
};

ChakraWriter::ChakraWriter(const std::filesystem::path& path) : impl_(std::make_unique<Impl>(path)) {
  proto::chakra::GlobalMetadata metadata;
  metadata.set_version("0.0.4");
  impl_->write(metadata);
}

ChakraWriter::~ChakraWriter() = default;

// The types of attributes matter: readers look for a value in the field of the type that they expect.
void ChakraWriter::add(const ChakraWork& w) {
  proto::chakra::Node& node = impl_->node;
  node.Clear();
  node.set_id(w.id);
  node.set_name(w.name);
  node.set_type(static_cast<std::int32_t>(w.type));
  for (const std::uint64_t id : w.after) node.add_data_deps(id);
  node.set_start_time_micros(micros(w.start));
  node.set_duration_micros(micros(w.duration));
  attribute(node, "is_cpu_op").set_bool_val(false);
  switch (w.type) {
    case ChakraNode::kCompute: attribute(node, "num_ops").set_int64_val(w.operations); [[fallthrough]];
    case ChakraNode::kMemLoad:
    case ChakraNode::kMemStore:
      attribute(node, "tensor_size").set_uint64_val(static_cast<std::uint64_t>(w.bytes.value));
      break;
    case ChakraNode::kCollective:
      attribute(node, "comm_type").set_int64_val(static_cast<std::int64_t>(w.collective));
      attribute(node, "comm_size").set_int64_val(w.bytes.value);
      attribute(node, "pg_name").set_string_val(w.group);
      break;
    case ChakraNode::kSend:
    case ChakraNode::kRecv:
      attribute(node, "comm_size").set_int64_val(w.bytes.value);
      attribute(node, "comm_src").set_int32_val(w.from);
      attribute(node, "comm_dst").set_int32_val(w.to);
      attribute(node, "comm_tag").set_int32_val(w.tag);
      break;
  }
  impl_->write(node);
}

void ChakraWriter::close() {
  if (!impl_->stream.Flush())
    throw unwritable(impl_->file.path(), "write the trace", impl_->stream.GetErrno());
  impl_->file.close();
}

std::string chakra_groups(const std::vector<std::vector<int>>& groups) {
  std::string text = "{";
  for (std::size_t g = 0; g < groups.size(); ++g) {
    text += fmt::format("{}  \"{}\": [{}]", g == 0 ? "\n" : ",\n", g, joined(groups[g]));
  }
  return text + "\n}\n";
}

}  // namespace hyperrun
