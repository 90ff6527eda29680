// A job as a text or in binary, as `hyperrun check` reads it. What is taken is written and read again. Seeds
// name no profile: to read one takes far longer than to read a job, and the target `machine` does it.
#include "runtime/spec/job_reader.h"
#include "runtime/spec/job_writer.h"
#include "tests/fuzz/fuzz.h"

using namespace hyperrun;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content = fuzz::text_of(data, size);
  constexpr JobUse kUse = JobUse::kToBeForeseen;
  fuzz::take_or_refuse_at([&] {
    const Job job = parse_job(content, "/job", kUse).job;
    fuzz::expect(parse_job(to_textproto(job), "/job", kUse).job == job, "another job once written as a text");
    fuzz::expect(parse_job(to_binary(job), "/job", kUse).job == job, "another job once written in binary");
  });
  return 0;
}
