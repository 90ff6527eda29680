// Pastes a remedy into a job, as a user does.
#pragma once

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "proto/job.pb.h"

namespace hyperrun::testing {

// Applies "in training, replacing batch and micro_batches: batch: 8 micro_batches: 4": deletes the fields
// that are replaced, and appends the lines to the block.
inline void paste_block(proto::Job& job, const std::string& pasted) {
  ASSERT_TRUE(pasted.starts_with("in ")) << pasted;
  const std::size_t colon = pasted.find(": ");
  const std::string head = pasted.substr(3, colon - 3), name = head.substr(0, head.find(','));
  const google::protobuf::FieldDescriptor* field = job.GetDescriptor()->FindFieldByName(name);
  ASSERT_NE(field, nullptr) << pasted;
  google::protobuf::Message* block = job.GetReflection()->MutableMessage(&job, field);
  for (std::size_t at = head.find(", replacing "); at < head.size();) {
    at = head.find(' ', head[at] == ',' ? at + 2 : at + 1) + 1;
    const std::size_t end = std::min(head.find(' ', at), head.size());
    const auto* old = block->GetDescriptor()->FindFieldByName(head.substr(at, end - at));
    ASSERT_NE(old, nullptr) << pasted;
    block->GetReflection()->ClearField(block, old);
    at = end;
  }
  proto::Job more;
  const std::string text = name + " { " + pasted.substr(colon + 2) + " }";
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &more)) << pasted;
  job.MergeFrom(more);
}

// The job text with a line pasted, which may concern several blocks.
inline std::string pasted(const std::string& job, const std::string& line) {
  proto::Job message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(job, &message)) << job;
  for (std::size_t begin = 0, end = 0; begin < line.size(); begin = end + 2) {
    end = std::min(line.find("; in ", begin), line.size());
    paste_block(message, line.substr(begin, end - begin));
  }
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  return text;
}

}  // namespace hyperrun::testing
