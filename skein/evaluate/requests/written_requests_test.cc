#include "skein/evaluate/requests/written_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "skein/evaluate/tasks/request_file.h"
#include "tests/error_of.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string line(int64_t document, int64_t index, const std::string& context,
                 const std::string& continuation, const std::string& label) {
  return fmt::format(R"({{"request_type": "loglikelihood", "doc_id": {}, "idx": {}, "label": {}, )"
                     R"("request": {{"context": "{}", "continuation": "{}"}}}})",
                     document, index, label, context, continuation);
}

class WrittenRequests : public ::testing::Test {
 protected:
  std::vector<DocumentRequests> read(const std::string& text) {
    std::ofstream(file_) << text;
    return read_requests(file_);
  }
  std::string error(const std::string& text) {
    return test::error_of([&] { read(text); });
  }
  const test::TempFolder folder_;
  const std::filesystem::path file_ = folder_ / "requests.jsonl";
};

TEST_F(WrittenRequests, AreTheChoicesOfDocuments) {
  const auto documents =
      read(line(4, 0, "a", " x", "1") + "\n" + line(4, 1, "b", " yy", "1") + "\n" +
           line(1000004, 0, "none", " x", "1") + "\n\n" + line(7, 0, "c", " z", "\"z\""));
  ASSERT_EQ(documents.size(), 2u);
  EXPECT_THAT(documents[0].choices, ElementsAre(" x", " yy"));
  EXPECT_THAT(documents[0].contexts, ElementsAre("a", "b"));
  EXPECT_EQ(documents[0].target.as_integer(), 1);
  EXPECT_EQ(documents[1].document, 1);
  EXPECT_EQ(documents[1].requests[0].context, "c");
  EXPECT_EQ(documents[1].target.as_integer(), 0);
}

// OLMES's answers of gold, of which it generates too.
TEST_F(WrittenRequests, OfBothTypesAreLogLikelihoods) {
  const auto documents = read(
      R"({"request_type": "generate_until_and_loglikelihood", "doc_id": 0, "idx": 0, "label": "4", )"
      R"("request": {"context": "2 + 2 =", "continuation": " 4", "stop_sequences": ["."]}})");
  ASSERT_EQ(documents.size(), 1u);
  EXPECT_EQ(documents[0].requests[0].kind, EvaluationRequest::Kind::kLoglikelihood);
  EXPECT_EQ(documents[0].requests[0].continuation, " 4");
}

TEST_F(WrittenRequests, ThatAreNotWhatTheyShouldBeAreRefusedByLine) {
  EXPECT_THAT(error(""), HasSubstr("there are no requests"));
  EXPECT_THAT(error("{"), HasSubstr("requests.jsonl, line 1"));
  EXPECT_THAT(error(line(1, 0, "a", "b", "0") + "\n[]"), HasSubstr("line 2: expected an object"));
  EXPECT_THAT(error(line(1, 1, "a", "b", "0")), HasSubstr("idx is 1, expected 0"));
  EXPECT_THAT(error(line(1, 0, "a", "", "0")), HasSubstr("continuation is empty"));
  EXPECT_THAT(error(line(1, 0, "a", "b", "2") + "\n" + line(1, 1, "a", "c", "2")),
              HasSubstr("line 2: the label of a document with 2 choices: expected 0 to 1"));
  EXPECT_THAT(error(R"({"request_type": "generate_until", "request": {}})"),
              HasSubstr("expected loglikelihood"));
}

TEST_F(WrittenRequests, AreATaskNamedByItsFolders) {
  const auto place = folder_ / "arc_easy" / "rc_5shot";
  std::filesystem::create_directories(place);
  std::ofstream(place / "requests.jsonl") << line(1, 0, "a", "b", "0");
  std::ofstream(place / "config.json") << R"({"task_config": {"num_shots": 5}})";
  const auto task = request_file_task(place / "requests.jsonl");
  EXPECT_EQ(task->task, "arc_easy:rc_5shot");
  EXPECT_EQ(task->num_fewshot, 5);
  EXPECT_TRUE(is_request_file("x/requests.jsonl.gz"));
  EXPECT_FALSE(is_request_file("hellaswag"));
}

}  // namespace
}  // namespace skein
