#include "skein/train/loop/best_loss.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "skein/base/text/units.h"

namespace skein {

void BestLoss::go_on_from(const Json& json) {
  best_.reset();
  worse_ = 0;
  step_ = -1;
  losses_ = Json();
  if (!json.is_object() || json.value("best_by", "") != name_) return;
  worse_ = json.value("worse", int64_t{0});
  const auto step = json.find("best_step"), loss = json.find("best_loss");
  if (step == json.end() || loss == json.end()) return;
  if (!step->is_number_integer() || !loss->is_number()) return;
  best_ = {step->get<int64_t>(), loss->get<float>()};
}

Json BestLoss::to_json(int64_t step) const {
  if (!is_watched()) return {};
  Json json = {{"best_by", name_}, {"worse", worse_}};
  if (best_) {
    json["best_step"] = best_->step;
    json["best_loss"] = best_->loss;
  }
  if (step == step_) json["losses"] = losses_;
  return json;
}

void BestLoss::observe(int64_t step, const std::string& set, double loss) {
  if (std::exchange(step_, step) != step) losses_ = Json::object();
  const std::string name = set.empty() ? "validation_loss" : "validation_loss/" + set;
  const auto rounded = static_cast<float>(loss);
  if (std::isfinite(rounded)) losses_[name] = rounded;
  if (name != name_) return;
  if (std::isfinite(rounded) && (!best_ || rounded < best_->loss)) {
    best_ = {step, rounded};
    worse_ = 0;
  } else {
    ++worse_;
  }
}

std::string BestLoss::why() const {
  return fmt::format("{} without a better {} than {}", counted(worse_, "validation"), name_,
                     best_ ? fmt::format("{:.4f} of step {}", best_->loss, best_->step)
                           : std::string("any finite one"));
}

}  // namespace skein
