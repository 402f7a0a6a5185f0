// How the optimizer updates each parameter of a model, as [optimizer] says.
#pragma once

#include "skein/config/config.h"
#include "skein/model/decoder.h"
#include "skein/optim/update.h"

namespace skein {

// Of the moments that optimizers keep.
DType moments_dtype(const PrecisionConfig& precision);

ParameterRule parameter_rule(const OptimizerConfig& optimizer, const ParameterSpec& parameter);

// UpdateOptions::rule of a model.
std::function<ParameterRule(std::string_view)> parameter_rules(const OptimizerConfig& optimizer,
                                                               const DecoderConfig& model);

}  // namespace skein
