// Parses the bytes of a job to its protobuf message and the places of its fields.
#pragma once

#include <string_view>
#include <vector>

#include "proto/job.pb.h"
#include "runtime/base/error.h"
#include "runtime/ir/job.h"
#include "runtime/spec/job_source.h"

namespace hyperrun {

// Control characters never stand in a text job and always stand in a binary one.
bool is_binary_job(std::string_view content);

// Both functions fill `message` and source.fields; source.path must be set. They return all errors in the
// order of the text. After an error the message is incomplete.
std::vector<Error> parse_text(std::string_view content, google::protobuf::Message& message,
                              JobSource& source);
std::vector<Error> parse_binary_job(std::string_view content, proto::Job& message, JobSource& source);

// A model as the block of a job, with every field but empty texts and blocks that say nothing.
proto::Model model_message(ModelSpec model);

}  // namespace hyperrun
