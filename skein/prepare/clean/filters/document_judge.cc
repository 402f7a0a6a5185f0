#include "skein/prepare/clean/filters/document_judge.h"

#include "skein/base/error.h"
#include "skein/base/text/units.h"

namespace skein {

DocumentJudge::DocumentJudge(const CleanRules& rules)
    : rules_(rules),
      repetition_is_on_(rules.is_on(Filter::kGopherRepetition)),
      quality_is_on_(rules.is_on(Filter::kGopherQuality)),
      c4_is_on_(rules.is_on(Filter::kC4)),
      fineweb_is_on_(rules.is_on(Filter::kFineWeb)),
      repetition_(rules_),
      c4_(rules_),
      fineweb_(rules_) {}

DocumentJudge::Decision DocumentJudge::judge(std::string_view text) {
  if (text.size() > UINT32_MAX) {
    fail(ErrorCode::kUnsupported, "a document of {}: cleaning takes less than 4 GiB at a time",
         format_bytes(static_cast<int64_t>(text.size())));
  }
  Decision decision;
  decision.text = text;
  if (repetition_is_on_) {
    decision.rule = repetition_.judge_lines(text, count_characters(text));
    if (decision.rule) return decision;
  }
  if (!repetition_is_on_ && !quality_is_on_ && !c4_is_on_ && !fineweb_is_on_) return decision;
  document_.read(text);
  if (repetition_is_on_) {
    decision.rule = repetition_.judge_words(document_);
    if (decision.rule) return decision;
  }
  if (quality_is_on_) {
    decision.rule = judge_gopher_quality(document_, rules_);
    if (decision.rule) return decision;
  }
  int64_t num_words = document_.num_words();
  if (c4_is_on_) {
    C4Result left = c4_.judge(document_);
    decision.rule = left.rule;
    decision.text = left.text;
    decision.cut = std::move(left.cut);
    num_words = left.num_words;
    if (decision.rule) return decision;
  }
  if (fineweb_is_on_) decision.rule = fineweb_.judge(decision.text, num_words);
  return decision;
}

}  // namespace skein
