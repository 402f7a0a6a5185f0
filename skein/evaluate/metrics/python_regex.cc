#include "skein/evaluate/metrics/python_regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <time.h>

#include <array>

#include "skein/base/error.h"
#include "skein/base/text/utf8.h"
#include "skein/jinja/values/text.h"

namespace skein {
namespace {

constexpr uint32_t kMostSteps = 10'000'000;  // from one start of a match
constexpr uint32_t kMaxHeapKiB = 64 << 10;
constexpr double kMostSeconds = 20;    // for a text
constexpr uint32_t kLooksAtClock = 8;  // once in so many starts

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

struct Clock {
  double deadline = thread_seconds() + kMostSeconds;
  uint32_t looks = 0;
};

int look_at_clock(pcre2_callout_block*, void* of) {
  Clock& clock = *static_cast<Clock*>(of);
  if (++clock.looks % kLooksAtClock != 0) return 0;
  return thread_seconds() > clock.deadline ? PCRE2_ERROR_CALLOUT : 0;
}

// What one search needs.
struct Search {
  explicit Search(const pcre2_code* code) {
    data.reset(pcre2_match_data_create_from_pattern(code, nullptr));
    context.reset(pcre2_match_context_create(nullptr));
    if (data == nullptr || context == nullptr) throw std::bad_alloc();
    pcre2_set_match_limit(context.get(), kMostSteps);
    pcre2_set_heap_limit(context.get(), kMaxHeapKiB);
    pcre2_set_callout(context.get(), look_at_clock, &clock);
    stack.reset(pcre2_jit_stack_create(32 << 10, size_t{kMaxHeapKiB} << 10, nullptr));
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }

  struct Free {
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
    void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
    void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
  };
  std::unique_ptr<pcre2_match_data, Free> data;
  std::unique_ptr<pcre2_match_context, Free> context;
  std::unique_ptr<pcre2_jit_stack, Free> stack;
  Clock clock;
};

[[noreturn]] void fail_match(const std::string& source, int error) {
  const auto limit = [&](const char* what) {
    fail(ErrorCode::kUnsupported,
         "the expression {} needs more than {} for a text: write it so that fewer repeats nest",
         quoted_regex(source), what);
  };
  if (error == PCRE2_ERROR_CALLOUT) limit("20 s");
  if (error == PCRE2_ERROR_MATCHLIMIT) limit("10,000,000 steps from one place");
  if (error == PCRE2_ERROR_HEAPLIMIT || error == PCRE2_ERROR_JIT_STACKLIMIT) limit("64 MiB");
  fail(error <= PCRE2_ERROR_UTF8_ERR1 && error >= PCRE2_ERROR_UTF8_ERR21 ? ErrorCode::kInvalid
                                                                         : ErrorCode::kUnsupported,
       "the expression {} cannot be matched with a text: {}", quoted_regex(source),
       message_of(error));
}

}  // namespace

void PythonRegex::FreeCode::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

// Without the optimisations that look ahead in a pattern: 10.42's are wrong of `[^a]?(?:b)?+.`
PythonRegex::PythonRegex(std::string_view source)
    : source_(source), syntax_(parse_python_regex(source)) {
  constexpr uint32_t kOptions =
      PCRE2_UTF | PCRE2_NO_AUTO_POSSESS | PCRE2_NO_START_OPTIMIZE | PCRE2_NO_DOTSTAR_ANCHOR;
  const std::string pattern = "(?C1)(?:" + syntax_.pattern + ")";  // looks at the clock
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  if (context == nullptr) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE at = 0;
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), kOptions,
                            &error, &at, context.get()));
  if (code_ == nullptr) {
    fail(ErrorCode::kUnsupported, "the expression {} is not supported: {}", quoted_regex(source),
         message_of(error));
  }
  pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // where there is none: the interpreter
}

void PythonRegex::for_each_match(std::string_view text,
                                 const std::function<bool(const Match&)>& found) const {
  Search search(code_.get());
  const PCRE2_SIZE* const offsets = pcre2_get_ovector_pointer(search.data.get());
  Match match(static_cast<size_t>(num_groups()) + 1);
  const char* const data = text.data() == nullptr ? "" : text.data();
  size_t from = 0;
  uint32_t options = 0;  // the first search checks that the text is UTF-8
  while (true) {
    const int result = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(data), text.size(),
                                   from, options, search.data.get(), search.context.get());
    if (result == PCRE2_ERROR_NOMATCH) return;
    if (result < 0) fail_match(source_, result);
    for (size_t i = 0; i < match.size(); ++i) {
      match[i].reset();
      if (static_cast<int>(i) >= result || offsets[2 * i] == PCRE2_UNSET) continue;
      match[i] = text.substr(offsets[2 * i], offsets[2 * i + 1] - offsets[2 * i]);
    }
    // As in Python, the next match may begin where this one ends, and is not empty there if this
    // one is.
    options = PCRE2_NO_UTF_CHECK | (offsets[0] == offsets[1] ? PCRE2_NOTEMPTY_ATSTART : 0);
    from = offsets[1];
    if (!found(match)) return;
  }
}

std::vector<std::vector<std::string>> PythonRegex::find_all(std::string_view text) const {
  std::vector<std::vector<std::string>> all;
  for_each_match(text, [&](const Match& match) {
    std::vector<std::string>& groups = all.emplace_back();
    for (size_t i = match.size() > 1 ? 1 : 0; i < match.size(); ++i) {
      groups.emplace_back(match[i].value_or(""));
    }
    return true;
  });
  return all;
}

std::string escape_python_regex(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c != '\0' && std::string_view("()[]{}?*+-|^$\\.&~# \t\n\r\v\f").find(c) != text.npos) {
      escaped += '\\';
    }
    escaped += c;
  }
  return escaped;
}

int64_t count_split_words(std::string_view text) {
  int64_t words = 1;
  bool in_space = false;
  for (const std::string_view character : jinja::Characters(text)) {
    const bool is_space = jinja::is_space(jinja::code_of(character));
    if (is_space && !in_space) ++words;
    in_space = is_space;
  }
  return words;
}

}  // namespace skein
