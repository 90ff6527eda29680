// Conversion of plain values to wire messages and back.
#pragma once

#include "proto/control.pb.h"
#include "runtime/base/error.h"
#include "runtime/tasks/messages.h"

namespace hyperrun::control {

pb::Message encode(const tasks::LoadProgram& program);
pb::Message encode(const tasks::Invocation& invocation);
pb::Message encode(tasks::InvocationDone done, std::int32_t device);
pb::Message encode(const Error& error, std::int32_t device);  // -1: all devices of the sender

tasks::LoadProgram decode(pb::LoadProgram&& message);
tasks::Invocation decode(const pb::Invocation& message);
tasks::InvocationDone decode(pb::InvocationDone&& message);
Error decode(const pb::Failure& message);

}  // namespace hyperrun::control
