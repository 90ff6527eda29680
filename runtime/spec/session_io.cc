#include "runtime/spec/session_io.h"

#include "proto/session.pb.h"
#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/spec/job_reader.h"
#include "runtime/spec/job_writer.h"
#include "runtime/spec/plan_io.h"

namespace hyperrun {

namespace {

Error not_whole(const std::string& place) {
  return Error(Code::kControl, "a session did not arrive whole")
      .at(place)
      .fix("run the same build of hyperrun on all hosts");
}

std::vector<std::string*> paths_of(Job& job) {
  DataSpec& data = job.data;
  return {&data.corpus,       &data.tokenizer, &data.tasks,         &data.samples,
          &job.run.directory, &job.run.resume, &job.run.chaos.model};
}

proto::Session message_of(const Session& session) {
  proto::Session out;
  out.set_name(session.name);
  for (const int rank : session.ranks) out.add_ranks(rank);
  Job job = session.job;
  for (std::string* path : paths_of(job)) {
    out.add_paths(*path);
    *path = valid_utf8(*path);
  }
  out.set_job(to_binary(job));
  out.set_plan(to_bytes(session.plan));
  if (session.original) out.set_original(to_bytes(*session.original));
  out.set_run_directory(session.run_directory);
  out.set_tokens(session.tokens);
  out.set_first_step(session.first_step);
  out.set_first_sample(session.first_sample);
  for (std::int32_t token : session.prompt) out.add_prompt(token);
  for (const auto& [name, content] : session.checkpoint_files)
    (*out.mutable_checkpoint_files())[name] = content;
  return out;
}

Session session_of(const proto::Session& in, const std::string& place) {
  Session session;
  session.name = in.name();
  session.ranks.assign(in.ranks().begin(), in.ranks().end());
  session.job = parse_job(in.job(), place).job;
  const std::vector<std::string*> paths = paths_of(session.job);
  if (in.paths_size() != std::ssize(paths)) throw not_whole(place);
  for (int i = 0; i < in.paths_size(); ++i) *paths[static_cast<std::size_t>(i)] = in.paths(i);
  session.plan = plan_from_bytes(in.plan(), place);
  if (!in.original().empty()) session.original = plan_from_bytes(in.original(), place);
  session.run_directory = in.run_directory();
  session.tokens = in.tokens();
  session.first_step = in.first_step();
  session.first_sample = in.first_sample();
  session.prompt.assign(in.prompt().begin(), in.prompt().end());
  session.checkpoint_files.insert(in.checkpoint_files().begin(), in.checkpoint_files().end());
  return session;
}

}  // namespace

std::string to_bytes(std::span<const Session> sessions) {
  proto::Sessions out;
  for (const Session& session : sessions) *out.add_sessions() = message_of(session);
  return out.SerializeAsString();
}

std::vector<Session> sessions_from_bytes(std::string_view bytes, const std::string& place) {
  proto::Sessions in;
  if (!in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || in.sessions().empty())
    throw not_whole(place);
  std::vector<Session> sessions;
  for (const proto::Session& session : in.sessions()) sessions.push_back(session_of(session, place));
  return sessions;
}

}  // namespace hyperrun
