#include "skein/evaluate/requests/few_shot.h"

#include <utility>

#include "skein/base/error.h"

namespace skein {

using jinja::Value;

FewShotSampler::FewShotSampler(const std::string& sampler, std::vector<Value> documents,
                               uint64_t seed, const std::string& task)
    : is_first_n_(sampler == "first_n"), documents_(std::move(documents)), random_(seed) {
  if (sampler != "default" && sampler != "first_n") {
    fail(ErrorCode::kInvalid, "task {}: fewshot_config.sampler is {}; expected default or first_n",
         task, sampler);
  }
}

void FewShotSampler::refuse_count(int64_t count, size_t available) const {
  fail(ErrorCode::kUsage,
       "{} few-shot examples are to be drawn (one more if the tested document may be among them), "
       "and there are {} documents to draw from; lower num_fewshot",
       count, available);
}

std::vector<int64_t> FewShotSampler::others(const Value& excluded) const {
  std::vector<int64_t> places;
  for (size_t i = 0; i < documents_.size(); ++i) {
    if (!equal(documents_[i], excluded)) places.push_back(static_cast<int64_t>(i));
  }
  return places;
}

std::vector<int64_t> FewShotSampler::first(int64_t count, const Value* excluded) const {
  std::vector<int64_t> places;
  for (size_t i = 0; i < documents_.size() && static_cast<int64_t>(places.size()) < count; ++i) {
    if (excluded == nullptr || !equal(documents_[i], *excluded))
      places.push_back(static_cast<int64_t>(i));
  }
  if (static_cast<int64_t>(places.size()) < count) refuse_count(count, places.size());
  return places;
}

std::vector<int64_t> FewShotSampler::sample(int64_t count, const Value* excluded) {
  if (is_first_n_) return first(count, excluded);
  const auto size = static_cast<int64_t>(documents_.size());
  const int64_t drawn_count = count + (excluded != nullptr ? 1 : 0);
  if (drawn_count > size) refuse_count(drawn_count, documents_.size());
  const std::vector<int64_t> drawn = random_.sample(size, drawn_count);
  if (excluded == nullptr) return drawn;
  std::vector<int64_t> places;
  for (const int64_t place : drawn) {
    if (static_cast<int64_t>(places.size()) < count && !equal(document(place), *excluded))
      places.push_back(place);
  }
  if (static_cast<int64_t>(places.size()) == count) return places;
  const std::vector<int64_t> pool = others(*excluded);
  if (count > static_cast<int64_t>(pool.size())) refuse_count(count, pool.size());
  places.clear();
  for (const int64_t at : random_.sample(static_cast<int64_t>(pool.size()), count))
    places.push_back(pool[static_cast<size_t>(at)]);
  return places;
}

}  // namespace skein
