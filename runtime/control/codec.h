// Plain values to wire messages and back.
#pragma once

#include "proto/control.pb.h"
#include "runtime/base/error.h"
#include "runtime/tasks/messages.h"

namespace hyperrun::control {

pb::Message encode(const LoadProgram& program);
pb::Message encode(const Invocation& invocation);
pb::Message encode(InvocationDone done);
pb::Message encode(const Error& error);

LoadProgram decode(pb::LoadProgram&& message);
Invocation decode(const pb::Invocation& message);
InvocationDone decode(pb::InvocationDone&& message);
Error decode(const pb::Failure& message);

}  // namespace hyperrun::control
