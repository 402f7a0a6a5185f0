#include "skein/base/ending.h"

#include <algorithm>
#include <array>

namespace skein {
namespace {

enum class Kind : uint8_t { kNone, kAskedFor, kConsequence, kCause, kFatal };
// When a failure that comes again after the same step is taken to come at every restart. Storage
// that fails before any step was done is more likely to be named wrongly than to be down.
enum class Again : uint8_t { kNo, kBeforeSteps, kYes };

struct EndingRow {
  Ending ending;
  const char* name;
  Kind kind;
  int exit_code;
  Again again = Again::kNo;
  bool restarts = false;  // a generation event may name it as the cause of a restart
};

// In the order of the enumerators.
constexpr std::array<EndingRow, 16> kEndings = {{
    {Ending::kNone, "none", Kind::kNone, kExitFailed},
    {Ending::kFinished, "finished", Kind::kAskedFor, kExitDone},
    {Ending::kStopped, "stopped", Kind::kAskedFor, kExitRequeue},
    {Ending::kStoppedEarly, "stopped early", Kind::kAskedFor, kExitRequeue},
    {Ending::kRegrouped, "regrouped", Kind::kAskedFor, kExitRegroup, Again::kNo, true},
    {Ending::kLostPeer, "lost peer", Kind::kConsequence, kExitFailed, Again::kNo, true},
    {Ending::kCrashed, "crashed", Kind::kCause, kExitFailed, Again::kYes, true},
    {Ending::kKilled, "killed", Kind::kCause, kExitFailed, Again::kNo, true},
    {Ending::kOutOfMemory, "no memory", Kind::kCause, kExitFailed, Again::kYes, true},
    {Ending::kHung, "hung", Kind::kCause, kExitFailed, Again::kYes, true},
    {Ending::kCutOff, "cut off", Kind::kConsequence, kExitFailed, Again::kNo, true},
    {Ending::kNoStorage, "no storage", Kind::kCause, kExitFailed, Again::kBeforeSteps, true},
    {Ending::kWrongBits, "wrong bits", Kind::kCause, kExitFailed, Again::kYes, true},
    {Ending::kNotFinite, "not finite", Kind::kFatal, kExitFailed, Again::kNo, true},
    {Ending::kInvalid, "invalid", Kind::kFatal, kExitFailed},
    {Ending::kRefused, "refused", Kind::kFatal, kExitUsage},
}};

// Whose a start is that fails before it trains.
enum class Blame : uint8_t { kRefusal, kMistake, kAccident };

struct ErrorRow {
  ErrorCode code;
  Blame blame;
  Ending ending;          // of a worker that throws it
  Ending first = ending;  // the same in the first generation
};

// In the order of the enumerators. What comes again at every start is fatal; another attempt may
// mend the rest. Who holds a folder from the beginning keeps it.
constexpr std::array<ErrorRow, kNumErrorCodes> kErrors = {{
    {ErrorCode::kUsage, Blame::kRefusal, Ending::kRefused},
    {ErrorCode::kInvalid, Blame::kMistake, Ending::kInvalid},
    {ErrorCode::kNotFound, Blame::kMistake, Ending::kInvalid},
    {ErrorCode::kCorrupt, Blame::kMistake, Ending::kCrashed},
    {ErrorCode::kIo, Blame::kAccident, Ending::kNoStorage},
    {ErrorCode::kNoSpace, Blame::kMistake, Ending::kNoStorage},
    {ErrorCode::kBusy, Blame::kRefusal, Ending::kNoStorage, Ending::kInvalid},
    {ErrorCode::kUnsupported, Blame::kMistake, Ending::kInvalid},
    {ErrorCode::kPeerLost, Blame::kAccident, Ending::kLostPeer},
    {ErrorCode::kNotFinite, Blame::kMistake, Ending::kNotFinite},
    {ErrorCode::kWrongBits, Blame::kMistake, Ending::kWrongBits},
    {ErrorCode::kInternal, Blame::kAccident, Ending::kCrashed},
}};

// Rows are found by the number of their enumerator.
constexpr bool are_in_order() {
  for (size_t i = 0; i < kEndings.size(); ++i) {
    if (static_cast<size_t>(kEndings[i].ending) != i) return false;
  }
  for (size_t i = 0; i < kErrors.size(); ++i) {
    if (static_cast<size_t>(kErrors[i].code) != i) return false;
  }
  return true;
}
static_assert(are_in_order());

const EndingRow& row_of(Ending ending) { return kEndings.at(static_cast<size_t>(ending)); }
const ErrorRow& row_of(ErrorCode code) { return kErrors.at(static_cast<size_t>(code)); }

}  // namespace

const char* ending_name(Ending ending) { return row_of(ending).name; }

Ending ending_named(const std::string& name) {
  const auto found = std::find_if(kEndings.begin(), kEndings.end(),
                                  [&](const EndingRow& row) { return row.name == name; });
  if (found == kEndings.end()) {
    fail(ErrorCode::kInvalid, "an ending is \"{}\", expected one such as \"{}\"",
         name.substr(0, 100), ending_name(Ending::kCrashed));
  }
  return found->ending;
}

Ending ending_of(ErrorCode code, bool is_first) {
  const ErrorRow& row = row_of(code);
  return is_first ? row.first : row.ending;
}

Ending ending_of_exit(int exit_code) {
  if (exit_code == kExitFailed) return Ending::kCrashed;
  const auto found = std::find_if(kEndings.begin(), kEndings.end(),
                                  [&](const EndingRow& row) { return row.exit_code == exit_code; });
  return found == kEndings.end() ? Ending::kCrashed : found->ending;
}

bool was_asked_for(Ending ending) { return row_of(ending).kind == Kind::kAskedFor; }

bool is_cause(Ending ending) { return row_of(ending).kind >= Kind::kCause; }

bool is_fatal(Ending ending) { return row_of(ending).kind == Kind::kFatal; }

bool comes_again(Ending ending, int64_t step) {
  const Again again = row_of(ending).again;
  return again == Again::kYes || (again == Again::kBeforeSteps && step == 0);
}

std::vector<std::string> restart_causes() {
  std::vector<std::string> causes = {kLostMachine};
  for (const EndingRow& row : kEndings) {
    if (row.restarts) causes.emplace_back(row.name);
  }
  return causes;
}

bool is_loss_of_machine(const std::string& cause) {
  return cause == kLostMachine ||
         std::any_of(kEndings.begin(), kEndings.end(), [&](const EndingRow& row) {
           return row.kind == Kind::kConsequence && row.name == cause;
         });
}

int exit_code_of(Ending ending) { return row_of(ending).exit_code; }

int exit_code_of(const Error& error) {
  return exit_code_of(ending_of(error.code(), /*is_first=*/true));
}

bool is_refusal(ErrorCode code) { return row_of(code).blame == Blame::kRefusal; }

bool is_mistake(ErrorCode code) { return row_of(code).blame != Blame::kAccident; }

}  // namespace skein
