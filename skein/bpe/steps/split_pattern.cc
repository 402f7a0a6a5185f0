#include "skein/bpe/steps/split_pattern.h"

namespace skein::bpe {
namespace {

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

}  // namespace

std::optional<SplitPattern::Kind> SplitPattern::named(std::string_view regular_expression) {
  if (regular_expression == kGpt2) return Kind::kGpt2;
  if (regular_expression == kLlama3) return Kind::kLlama3;
  if (regular_expression == kQwen2) return Kind::kQwen2;
  return std::nullopt;
}

std::string_view SplitPattern::regular_expression(Kind kind) {
  return kind == Kind::kGpt2 ? kGpt2 : kind == Kind::kLlama3 ? kLlama3 : kQwen2;
}

}  // namespace skein::bpe
