// Names of the schema for messages: which fields a block has, which one was probably meant.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <string_view>
#include <vector>

namespace hyperrun {

std::vector<std::string_view> field_names(const google::protobuf::Descriptor* block);

// What a user calls the block: the name of the field that holds it, or its kind if fields of several names do
// ("a figure"); "the job" or "the profile" at the top.
std::string block_title(const google::protobuf::Descriptor* block);

// A remedy for a name that the block does not have.
std::string suggest_field(std::string_view written, const google::protobuf::Descriptor* block);

// A remedy for a value that a field of the block does not take.
std::string suggest_value(std::string_view written, const std::vector<std::string_view>& legal,
                          const google::protobuf::Descriptor* block);

// "a, b, c".
std::string join(const std::vector<std::string_view>& words, std::string_view between = ", ");

}  // namespace hyperrun
