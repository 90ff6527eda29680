// Names of the schema for messages: the fields of a block, and the one that a misspelt name stands for.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <string_view>
#include <vector>

namespace hyperrun {

std::vector<std::string_view> field_names(const google::protobuf::Descriptor* block);

// The block's name for users: that of the field that holds it, or its kind ("a figure") if fields of several
// names do; "the job" or "the profile" at the top.
std::string block_title(const google::protobuf::Descriptor* block);

// A remedy for a name that the block does not have.
std::string suggest_field(std::string_view written, const google::protobuf::Descriptor* block);

// A remedy for a value that a field of the block does not take.
std::string suggest_value(std::string_view written, const std::vector<std::string_view>& legal,
                          const google::protobuf::Descriptor* block);

}  // namespace hyperrun
