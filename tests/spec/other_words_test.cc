// Every row of the table of other words leads to legal text of a job.
#include "runtime/spec/other_words.h"

#include <gmock/gmock.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>

#include <set>

#include "proto/job.pb.h"
#include "proto/supernode.pb.h"
#include "runtime/spec/job_reader.h"
#include "tests/spec/job_texts.h"

namespace hyperrun {
namespace {

using google::protobuf::Descriptor;

bool is_field(const Descriptor* block, std::string_view name) {
  return block->FindFieldByName(std::string(name)) != nullptr;
}

// True if protobuf's parser takes the line as a part of the block.
bool is_line(const Descriptor* block, std::string_view line) {
  google::protobuf::DynamicMessageFactory factory;
  const std::unique_ptr<google::protobuf::Message> message(factory.GetPrototype(block)->New());
  return google::protobuf::TextFormat::ParseFromString(std::string(line), message.get());
}

std::set<std::string> all_fields() {
  std::set<std::string> names;
  const auto* file = proto::Job::descriptor()->file();
  for (int m = 0; m < file->message_type_count(); ++m)
    for (int f = 0; f < file->message_type(m)->field_count(); ++f)
      names.emplace(file->message_type(m)->field(f)->name());
  return names;
}

std::string remedy(const std::string& text) {
  try {
    parse_job(text, "job.textproto");
  } catch (const JobError& e) {
    return e.remedy();
  }
  return "accepted";
}

TEST(OtherWords, LeadToWhatAJobMaySay) {
  for (const OtherWord& row : other_words()) {
    const Descriptor* block = block_at(row.block);
    EXPECT_TRUE(is_field(block, row.text) || is_line(block, row.text)) << row.word << ": " << row.text;
  }
}

TEST(OtherWords, EachIsThereOnceAndNoFieldOfAJob) {
  const std::set<std::string> fields = all_fields();
  std::set<std::string_view> words;
  for (const OtherWord& row : other_words()) {
    EXPECT_TRUE(words.insert(row.word).second) << row.word << " is there twice";
    EXPECT_FALSE(fields.contains(std::string(row.word))) << row.word;
  }
}

TEST(OtherWords, AreAnsweredInTheirOwnBlock) {
  EXPECT_EQ(remedy(with("batch: 8", "batch_size: 8")), "did you mean \"batch\"?");
  EXPECT_EQ(remedy(with("batch: 8", "global_batch_size: 8")), "did you mean \"batch\"?");
  EXPECT_EQ(remedy(with("lr: 1e-3", "learning_rate: 1e-3")), "did you mean \"lr\"?");
  EXPECT_EQ(remedy(with("layers: 2", "num_layers: 2")), "did you mean \"layers\"?");
  EXPECT_EQ(remedy(with("hidden: 64", "hidden_size: 64")), "did you mean \"hidden\"?");
  EXPECT_EQ(remedy(with("hidden: 64", "hidden: 64 type: \"llama\"")), "did you mean \"name\"?");
  EXPECT_EQ(remedy(with("micro_batches: 2", "micro_batch_size: 4")),
            "did you mean \"micro_batches\"? It is their number: the batch divided by the sequences of one.");
}

TEST(OtherWords, AreSentToTheBlockWhereTheyBelong) {
  EXPECT_EQ(remedy(with("hidden: 64", "hidden: 64 batch_size: 8")),
            "did you mean \"batch\" in \"training\"?");
  EXPECT_EQ(remedy(with("batch: 8", "batch: 8 seq_len: 32")), "did you mean \"sequence\" in \"model\"?");
  EXPECT_EQ(remedy(with("hidden: 64", "hidden: 64 num_experts: 8")),
            "did you mean \"count\" in \"experts\"?");
  EXPECT_EQ(remedy(with("hidden: 64", "hidden: 64 bf16: true")),
            "did you mean precision: \"bfloat16\" in \"training\"?");
  EXPECT_EQ(remedy(with("batch: 8", "batch: 8 tensor_parallel: 2")),
            "did you mean mesh { name: \"tp\" size: 2 } presets: [\"tp\", \"sp\"] in \"parallel\"?");
}

// An encoder has layers of its own.
TEST(OtherWords, StayInABlockThatHasTheField) {
  EXPECT_EQ(suggest_for_other_word("num_layers", block_at("programs.encoder")), "did you mean \"layers\"?");
  EXPECT_EQ(suggest_for_other_word("intermediate_size", block_at("model.experts")), "did you mean \"ffn\"?");
}

TEST(OtherWords, AreAnsweredAsValuesToo) {
  const char* presets = "[\"dp\", \"tp\"]";
  EXPECT_EQ(remedy(with(presets, "\"pp\"")), "did you mean pipeline { axis: \"pp\" }?");
  EXPECT_EQ(remedy(with(presets, "\"fsdp\"")), "did you mean presets: [\"dp\", \"zero3\"]?");
  EXPECT_EQ(remedy(with("lr: 1e-3", "lr: 1e-3 precision: \"bf16\"")), "did you mean \"bfloat16\"?");
  EXPECT_EQ(remedy(with("lr: 1e-3", "lr: 1e-3 precision: \"fp32\"")), "did you mean \"float32\"?");
}

TEST(OtherWords, AreNoneOfAProfile) {
  EXPECT_EQ(suggest_for_other_word("batch_size", proto::Profile::descriptor()), "");
  EXPECT_EQ(suggest_for_other_word("nonsense", block_at("")), "");
}

}  // namespace
}  // namespace hyperrun
