#include "skein/bpe/expression/expression.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>
#include <time.h>

#include <algorithm>
#include <map>

#include "skein/base/error.h"
#include "skein/bpe/expression/expression_parser.h"
#include "skein/bpe/unicode/invalid_utf8.h"

namespace skein::bpe {
namespace {

constexpr size_t kMaxStackBytes = size_t{256} << 20;
constexpr uint32_t kMaxHeapKiB = 1 << 20;
constexpr double kSecondsAText = 20, kSecondsAMegabyte = 20;
constexpr uint32_t kMostTries = 40'000'000;  // for a match; Oniguruma gives up after 10,000,000
constexpr uint32_t kLooksAtClock = 256;      // once in so many

double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

std::string shortened(const std::string& source) {
  return source.size() > 400 ? "it" : fmt::format("`{}`", source);
}

[[noreturn]] void fail_late(const std::string& source, double seconds) {
  fail(ErrorCode::kUnsupported, "the expression {} takes more than {:.0f} s for a text",
       shortened(source), seconds);
}

}  // namespace

void Expression::FreeCode::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

Expression::Expression(std::string_view source) : source_(source) {
  const ParsedExpression parsed = parse_expression(source);
  const std::vector<std::vector<uint8_t>> classes = make_classes(parsed.sets);
  std::vector<std::string> members;  // of each set, in PCRE2's syntax
  for (const std::vector<uint8_t>& numbers : classes) {
    std::string member;
    for (const uint8_t number : numbers) member += fmt::format("\\x{:02x}", number);
    members.push_back(numbers.empty() ? "(?!)" : "[" + member + "]");
  }
  std::string pattern;
  for (const ExpressionPart& part : parsed.parts) {
    pattern += part.syntax;
    if (part.set >= 0) pattern += members[static_cast<size_t>(part.set)];
  }
  may_be_empty_ = parsed.may_be_empty;
  for (size_t set = 0; set < classes.size(); ++set) {
    for (const uint8_t number : classes[set]) {
      if (parsed.begins[set]) begins_[number] = true;
    }
  }
  if (may_be_empty_) begins_.fill(true);
  compile(pattern);
}

// Without the optimisations that look ahead in a pattern: 10.42's are wrong of `[^a]?(?:b)?+.`
void Expression::compile(const std::string& pattern) {
  constexpr uint32_t kOptions = PCRE2_ANCHORED | PCRE2_NO_AUTO_CAPTURE | PCRE2_NEVER_UTF |
                                PCRE2_NO_AUTO_POSSESS | PCRE2_NO_START_OPTIMIZE;
  int error = 0;
  PCRE2_SIZE at = 0;
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), kOptions,
                            &error, &at, nullptr));
  if (code_ == nullptr) {
    fail(ErrorCode::kUnsupported, "{} is not read: {}", shortened(source_), message_of(error));
  }
  pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // where there is none: the interpreter
}

// Characters that are in the same sets have one class.
std::vector<std::vector<uint8_t>> Expression::make_classes(const std::vector<CodePoints>& sets) {
  std::map<char32_t, std::vector<size_t>> changes;  // [code]: sets that begin or end there
  changes[0];
  for (size_t i = 0; i < sets.size(); ++i) {
    for (const auto& [first, last] : sets[i].ranges()) {
      changes[first].push_back(i);
      if (last < CodePoints::kLast) changes[last + 1].push_back(i);
    }
  }
  std::map<std::vector<bool>, size_t> numbers;
  std::vector<bool> is_in(sets.size());
  std::vector<uint8_t> of_code(CodePoints::kLast + 1);
  for (auto change = changes.begin(); change != changes.end(); ++change) {
    for (const size_t set : change->second) is_in[set].flip();
    const size_t number = numbers.try_emplace(is_in, numbers.size()).first->second;
    if (number > 255) {
      fail(ErrorCode::kUnsupported,
           "{} is not read: it tells more than 256 kinds of characters apart", shortened(source_));
    }
    const auto next = std::next(change);
    std::fill(of_code.begin() + change->first,
              next == changes.end() ? of_code.end() : of_code.begin() + next->first,
              static_cast<uint8_t>(number));
  }
  make_pages(of_code);
  std::vector<std::vector<uint8_t>> classes(sets.size());
  for (const auto& [in_sets, number] : numbers) {
    for (size_t i = 0; i < sets.size(); ++i) {
      if (in_sets[i]) classes[i].push_back(static_cast<uint8_t>(number));
    }
  }
  return classes;
}

void Expression::make_pages(const std::vector<uint8_t>& class_of_code) {
  std::map<std::array<uint8_t, 256>, uint16_t> pages;
  for (size_t begin = 0; begin < class_of_code.size(); begin += 256) {
    std::array<uint8_t, 256> page;
    std::copy_n(class_of_code.begin() + static_cast<ptrdiff_t>(begin), 256, page.begin());
    const auto [found, is_new] = pages.try_emplace(page, static_cast<uint16_t>(classes_.size()));
    if (is_new) classes_.push_back(page);
    pages_.push_back(found->second);
  }
}

void Expression::classify(std::string_view text, std::string& classes) const {
  classes.resize(text.size());
  char* to = classes.data();
  const std::array<uint8_t, 256>& latin = classes_[pages_[0]];
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    if (static_cast<uint8_t>(*at) < 0x80) {
      *to++ = static_cast<char>(latin[static_cast<uint8_t>(*at++)]);
      continue;
    }
    const utf8::Character character = utf8::decode(at, end);
    *to++ = static_cast<char>(classes_[pages_[character.code >> 8]][character.code & 0xff]);
    at += character.size;
  }
  classes.resize(static_cast<size_t>(to - classes.data()));
}

struct Matcher::State {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(32 << 10, kMaxStackBytes, nullptr);
  double deadline = 0, seconds = 0;
  uint32_t looks = 0;

  bool is_late() { return ++looks % kLooksAtClock == 0 && thread_seconds() > deadline; }
};

Matcher::Matcher() : state_(std::make_unique<State>()) {
  pcre2_set_match_limit(state_->context, kMostTries);
  pcre2_set_heap_limit(state_->context, kMaxHeapKiB);
  pcre2_jit_stack_assign(state_->context, nullptr, state_->stack);
  pcre2_set_callout(
      state_->context,
      [](pcre2_callout_block*, void* state) {
        return static_cast<State*>(state)->is_late() ? PCRE2_ERROR_CALLOUT : 0;
      },
      state_.get());
  begin_text(0);
}

Matcher::~Matcher() {
  pcre2_match_data_free(state_->data);
  pcre2_match_context_free(state_->context);
  pcre2_jit_stack_free(state_->stack);
}

void Matcher::begin_text(size_t num_bytes) {
  state_->seconds = kSecondsAText + kSecondsAMegabyte * static_cast<double>(num_bytes) * 1e-6;
  state_->deadline = thread_seconds() + state_->seconds;
}

bool Matcher::match(const Expression& expression, std::string_view classes, size_t from,
                    Span& found) {
  const int result =
      pcre2_match(expression.code_.get(), reinterpret_cast<PCRE2_SPTR>(classes.data()),
                  classes.size(), from, PCRE2_NO_UTF_CHECK, state_->data, state_->context);
  if (result == PCRE2_ERROR_NOMATCH) return false;
  if (result == PCRE2_ERROR_CALLOUT) fail_late(expression.source_, state_->seconds);
  if (result < 0) {
    fail(ErrorCode::kUnsupported, "the expression {} cannot be matched with a text: {}",
         shortened(expression.source_), message_of(result));
  }
  const PCRE2_SIZE* const offsets = pcre2_get_ovector_pointer(state_->data);
  found = {offsets[0], offsets[1]};
  return true;
}

bool Matcher::find(const Expression& expression, std::string_view classes, size_t from,
                   Span& found) {
  for (; from <= classes.size(); ++from) {
    while (from < classes.size() && !expression.begins_[static_cast<uint8_t>(classes[from])]) {
      ++from;
    }
    if (from == classes.size() && !expression.may_be_empty_) return false;
    if (match(expression, classes, from, found)) return true;
    if (state_->is_late()) fail_late(expression.source_, state_->seconds);
  }
  return false;
}

void Matcher::find_all(const Expression& expression, std::string_view classes,
                       std::vector<Span>& found) {
  found.clear();
  bool any = false;
  size_t last_end = 0;
  Span match{};
  for (size_t from = 0; from <= classes.size() && find(expression, classes, from, match);) {
    if (match.begin == match.end && any && match.end == last_end) {
      ++from;
      continue;
    }
    found.push_back(match);
    any = true;
    from = last_end = match.end;
  }
}

}  // namespace skein::bpe
