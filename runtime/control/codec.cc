#include "runtime/control/codec.h"

#include <utility>

namespace hyperrun::control {

pb::Message encode(const tasks::LoadProgram& program) {
  pb::Message m;
  auto& body = *m.mutable_load_program();
  body.set_program(program.program);
  body.set_name(program.name);
  body.set_content(program.content);
  return m;
}

pb::Message encode(const tasks::Invocation& invocation) {
  pb::Message m;
  auto& body = *m.mutable_invocation();
  body.set_id(invocation.id);
  body.set_program(invocation.program);
  body.set_step(invocation.step);
  body.set_data(invocation.data);
  for (const auto& [key, value] : invocation.scalars) {
    pb::Scalar& scalar = (*body.mutable_scalars())[key];
    if (const auto* integer = std::get_if<std::int64_t>(&value))
      scalar.set_integer(*integer);
    else
      scalar.set_real(std::get<double>(value));
  }
  return m;
}

pb::Message encode(tasks::InvocationDone done, std::int32_t device) {
  pb::Message m;
  auto& body = *m.mutable_done();
  body.set_id(done.id);
  body.set_device(device);
  for (const auto& [key, value] : done.outputs) (*body.mutable_outputs())[key] = value;
  body.set_report(std::move(done.report));
  body.set_data(std::move(done.data));
  return m;
}

pb::Message encode(const Error& error, std::int32_t device) {
  pb::Message m;
  auto& body = *m.mutable_failure();
  body.set_device(device);
  body.set_code(std::string(name(error.code())));
  body.set_cause(error.cause());
  body.set_place(error.place());
  body.set_legal(error.legal());
  body.set_remedy(error.remedy());
  return m;
}

tasks::LoadProgram decode(pb::LoadProgram&& message) {
  return {message.program(), std::move(*message.mutable_name()), std::move(*message.mutable_content())};
}

tasks::Invocation decode(const pb::Invocation& message) {
  tasks::Invocation invocation{message.id(), message.program(), message.step(),
                               {},           message.data(),    tasks::kEveryDevice};
  for (const auto& [key, value] : message.scalars()) {
    if (value.value_case() == pb::Scalar::kInteger)
      invocation.scalars.emplace(key, value.integer());
    else
      invocation.scalars.emplace(key, value.real());
  }
  return invocation;
}

tasks::InvocationDone decode(pb::InvocationDone&& message) {
  tasks::InvocationDone done{
      message.id(), {}, std::move(*message.mutable_report()), std::move(*message.mutable_data())};
  for (const auto& [key, value] : message.outputs()) done.outputs.emplace(key, value);
  return done;
}

Error decode(const pb::Failure& message) {
  return Error(code_from_name(message.code()), message.cause())
      .at(message.place())
      .legal(message.legal())
      .fix(message.remedy());
}

}  // namespace hyperrun::control
