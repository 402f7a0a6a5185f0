#include "skein/bpe/steps/decode_steps.h"

#include <cctype>

#include "skein/bpe/unicode/byte_alphabet.h"
#include "skein/bpe/unicode/invalid_utf8.h"

namespace skein::bpe {
namespace {

using Tokens = std::vector<std::string>;

void run(const DecodeBytes&, Tokens& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) {
    const size_t before = bytes.size();
    if (from_byte_level(token, bytes)) continue;
    bytes.resize(before);
    bytes += token;
  }
  tokens = {utf8::replace_ill_formed(bytes)};
}

void run(const DecodeFallback&, Tokens& tokens) {
  Tokens decoded;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (utf8::valid_prefix(bytes) == bytes.size()) {
      decoded.push_back(bytes);
    } else {
      decoded.insert(decoded.end(), bytes.size(), std::string(utf8::kReplacement));
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const int byte = byte_of_fallback(token); byte >= 0) {
      bytes.push_back(static_cast<char>(byte));
    } else {
      flush();
      decoded.push_back(std::move(token));
    }
  }
  flush();
  tokens = std::move(decoded);
}

void run(const DecodeFuse&, Tokens& tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  tokens = {std::move(all)};
}

void run(const DecodeStrip& step, Tokens& tokens) {
  for (std::string& token : tokens) {
    std::string_view rest = token;
    for (size_t i = 0; i < step.start && rest.starts_with(step.content); ++i) {
      rest.remove_prefix(step.content.size());
    }
    for (size_t i = 0; i < step.stop && rest.ends_with(step.content); ++i) {
      rest.remove_suffix(step.content.size());
    }
    token = std::string(rest);
  }
}

void run(const ReplaceStep& step, Tokens& tokens) {
  const Normalizer replace{.steps = {step}};
  Normalizer::Session session;
  for (std::string& token : tokens) token = std::string(replace.apply(token, session));
}

void run(const MetaspaceStep& step, Tokens& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string decoded;
    std::string_view rest = tokens[i];
    while (!rest.empty()) {
      if (rest.starts_with(step.replacement)) {
        if (i > 0 || step.prepend == MetaspaceStep::Prepend::kNever) decoded.push_back(' ');
        rest.remove_prefix(step.replacement.size());
      } else {
        decoded.push_back(rest[0]);
        rest.remove_prefix(1);
      }
    }
    tokens[i] = std::move(decoded);
  }
}

}  // namespace

int byte_of_fallback(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int byte = 0;
  for (const char c : token.substr(3, 2)) {
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) return -1;
    byte = byte * 16 + (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  return byte;
}

std::string Decoder::apply(std::vector<std::string> tokens) const {
  for (const DecoderStep& step : steps) {
    std::visit([&](const auto& each) { run(each, tokens); }, step);
  }
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0 && joins_with_spaces) text.push_back(' ');
    text += tokens[i];
  }
  return text;
}

}  // namespace skein::bpe
