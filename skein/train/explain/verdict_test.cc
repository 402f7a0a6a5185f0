#include "skein/train/explain/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace skein {
namespace {

using testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

StepAnswer answer_of(std::initializer_list<double> losses) {
  StepAnswer answer{.step = 9, .weights_step = 8};
  for (const double loss : losses) {
    answer.loss += loss;
    answer.documents.push_back({.num_labels = 4, .loss = loss});
  }
  return answer;
}

TEST(Verdict, SaysNothingOfAStepLikeOthers) { EXPECT_EQ(verdict_of(answer_of({1, 2})), ""); }

TEST(Verdict, OfAStepThatEndedTheRunWithFiniteLosses) {
  StepAnswer answer = answer_of({1, 2});
  answer.ended_run = true;
  EXPECT_THAT(verdict_of(answer), HasSubstr("look with --exact"));
  answer.is_exact = true;
  EXPECT_THAT(verdict_of(answer), HasSubstr("a lower optimizer.learning_rate may help"));
}

TEST(Verdict, SomeDocumentsBreakTheStep) {
  EXPECT_EQ(verdict_of(answer_of({1, kNan, 2})),
            "with these weights the loss of 1 of 3 documents is not finite: it comes first");
  EXPECT_THAT(verdict_of(answer_of({1, kNan, kNan})), HasSubstr("2 of 3 documents"));
}

TEST(Verdict, AllDocumentsMeanTheWeights) {
  EXPECT_THAT(verdict_of(answer_of({kNan, kNan})),
              HasSubstr("with the weights of step 8 no document has a finite loss: the weights are "
                        "broken already"));
  EXPECT_THAT(verdict_of(answer_of({kNan})), HasSubstr("the document or the weights are broken"));
}

}  // namespace
}  // namespace skein
