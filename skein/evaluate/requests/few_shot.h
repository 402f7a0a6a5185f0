// Draws the few-shot examples of each tested document, as lm-evaluation-harness draws them.
//
//   default   random.Random(seed).sample; the state runs on from document to document
//   first_n   the first ones in order
//
// If `excluded` is given, documents equal to it are no examples: one more is drawn, and it is
// removed; if copies of it leave too few, all are drawn again from the others.
//
// Errors   kUsage for more examples than there are documents; kInvalid for another sampler
// Source   lm-evaluation-harness 0.4.13, api/samplers.py
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skein/evaluate/python_random.h"
#include "skein/jinja/values/value.h"

namespace skein {

class FewShotSampler {
 public:
  // `task` names the task if the sampler is refused.
  FewShotSampler(const std::string& sampler, std::vector<jinja::Value> documents, uint64_t seed,
                 const std::string& task);

  // The places of `count` examples. `excluded`: null, or the tested document.
  std::vector<int64_t> sample(int64_t count, const jinja::Value* excluded);
  const jinja::Value& document(int64_t place) const {
    return documents_[static_cast<size_t>(place)];
  }

 private:
  std::vector<int64_t> first(int64_t count, const jinja::Value* excluded) const;
  std::vector<int64_t> others(const jinja::Value& excluded) const;
  [[noreturn]] void refuse_count(int64_t count, size_t available) const;

  bool is_first_n_;
  std::vector<jinja::Value> documents_;
  PythonRandom random_;
};

}  // namespace skein
